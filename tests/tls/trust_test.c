/* SPDX-License-Identifier: MIT */
/* Which servers a client trusts, and what it says about the others. */
#include "raw.h"

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, "text/plain", "Hello!\n", 7);
}

/* Calls with this host in the address. */
static janus_status call_host(struct talk *talk, const char *host, const char **why)
{
    char               url[URL_BYTES];
    janus_http_reply  *reply = NULL;
    janus_http_client *client = secure_client();
    (void)snprintf(url, sizeof url, "https://%s:%u/", host, (unsigned)talk->at.port);
    *why = "";
    janus_status status =
        janus_http_call(client, "GET", url, JANUS_HTTP_CALL_OPTIONS(.out_why = why), &reply);
    if (status == JANUS_OK) CHECK_EQ(janus_http_reply_status(reply), 200);
    janus_http_reply_destroy(reply);
    CHECK_EQ(look(client).connection_count, status == JANUS_OK);
    janus_http_client_destroy(client);
    return status;
}

static void call_well(struct talk *talk)
{
    const char *why = NULL;
    CHECK_EQ(call_host(talk, "127.0.0.1", &why), JANUS_OK);
    CHECK_STR(why, "");
}

static void call_stranger(struct talk *talk)
{
    const char *why = NULL;
    CHECK_EQ(call_host(talk, "127.0.0.1", &why), JANUS_DENIED);
    CHECK_STR(why, "unable to get local issuer certificate");
}

TEST("a client does not trust a certificate for which nobody vouches that it knows")
{
    tls_server = server_of(paper_for(paper_authority(), NAMES), NULL);
    secure_run((struct talk){.handler = greet, .client = call_stranger});
}

static void call_elsewhere(struct talk *talk)
{
    const char *why = NULL;
    CHECK_EQ(call_host(talk, "127.0.0.1", &why), JANUS_DENIED);
    CHECK_STR(why, "IP address mismatch");
}

TEST("a client does not trust a certificate for another address")
{
    tls_server = server_of(paper_for(authority(), "DNS:localhost,IP:127.0.0.2"), NULL);
    secure_run((struct talk){.handler = greet, .client = call_elsewhere});
}

static void call_named(struct talk *talk)
{
    const char *why = NULL;
    CHECK_EQ(call_host(talk, "localhost", &why), JANUS_DENIED);
    CHECK_STR(why, "hostname mismatch");
}

TEST("a client does not trust a certificate for another host")
{
    tls_server = server_of(paper_for(authority(), "DNS:localhost.example,IP:127.0.0.1"), NULL);
    secure_run((struct talk){.handler = greet, .client = call_named});
}

static void call_local(struct talk *talk)
{
    const char *why = NULL;
    CHECK_EQ(call_host(talk, "localhost", &why), JANUS_OK);
}

TEST("a certificate for the host, by an authority that the client knows, is trusted")
{
    secure_run((struct talk){.handler = greet, .client = call_well});
    secure_run((struct talk){.handler = greet, .client = call_local});
    tls_server = server_of(paper_rsa(authority(), NAMES, 2048), NULL);
    secure_run((struct talk){.handler = greet, .client = call_well});
}

static void call_late(struct talk *talk)
{
    const char *why = NULL;
    CHECK_EQ(call_host(talk, "127.0.0.1", &why), JANUS_DENIED);
    CHECK_STR(why, "certificate has expired");
}

TEST("a client does not trust a certificate that has expired")
{
    tls_server = server_of(paper_expired(authority(), NAMES), NULL);
    secure_run((struct talk){.handler = greet, .client = call_late});
}

TEST("only a client that is dangerously unverified trusts everybody")
{
    tls_server = server_of(paper_expired(paper_authority(), "DNS:elsewhere"), NULL);
    CHECK_EQ(janus_tls_client_create(JANUS_TLS_CLIENT_OPTIONS(.dangerously_unverified = true),
                                     &tls_client, NULL),
             JANUS_OK);
    secure_run((struct talk){.handler = greet, .client = call_well});
}

static void call_plain(struct talk *talk)
{
    const char *why = NULL;
    tls_client = trusting();
    CHECK_EQ(call_host(talk, "127.0.0.1", &why), JANUS_INVALID);
    CHECK_STR(why, "wrong version number");
    janus_tls_client_destroy(tls_client);
    tls_client = NULL;
}

TEST("a client of https learns that a server speaks plain HTTP")
{
    talk_run(&(struct talk){.handler = greet, .client = call_plain});
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

TEST("without options a client trusts the authorities of the system")
{
    char path[] = "/tmp/janusrt-tls-XXXXXX";
    int  made = mkstemp(path);
    CHECK(made >= 0);
    CHECK_EQ(close(made), 0);
    write_file(path, authority().chain);
    CHECK_EQ(setenv("SSL_CERT_FILE", path, 1), 0);
    CHECK_EQ(janus_tls_client_create(NULL, &tls_client, NULL), JANUS_OK);
    secure_run((struct talk){.handler = greet, .client = call_well});
    tls_server = server_of(paper_for(paper_authority(), NAMES), NULL);
    CHECK_EQ(janus_tls_client_create(NULL, &tls_client, NULL), JANUS_OK);
    secure_run((struct talk){.handler = greet, .client = call_stranger});
    CHECK_EQ(unlink(path), 0);
    janus_tls_why     why = {""};
    janus_tls_client *none = NULL;
    CHECK_EQ(janus_tls_client_create(NULL, &none, &why), JANUS_UNAVAILABLE);
    CHECK(strstr(why.text, "set ca_path") != NULL);
    CHECK_EQ(unsetenv("SSL_CERT_FILE"), 0);
}

static int64_t create_in_task(void *argument)
{
    janus_tls_why     why = {""};
    janus_tls_client *client = NULL;
    const char       *path = argument;
    CHECK_EQ(janus_tls_client_create(JANUS_TLS_CLIENT_OPTIONS(.ca_path = path), &client, &why),
             JANUS_OK);
    janus_tls_client_destroy(client);
    write_file(path, "nothing\n");
    CHECK_EQ(janus_tls_client_create(JANUS_TLS_CLIENT_OPTIONS(.ca_path = path), &client, &why),
             JANUS_INVALID);
    CHECK(strstr(why.text, path) == why.text);
    CHECK(strstr(why.text, "has no certificate") != NULL);
    CHECK_EQ(
        janus_tls_client_create(
            JANUS_TLS_CLIENT_OPTIONS(.ca_path = path, .ca_text = authority().chain), &client, &why),
        JANUS_INVALID);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(janus_tls_client_create(JANUS_TLS_CLIENT_OPTIONS(.ca_path = path), &client, &why),
             JANUS_NOT_FOUND);
    CHECK(strstr(why.text, "cannot be read") != NULL);
    CHECK_EQ(janus_tls_client_create(JANUS_TLS_CLIENT_OPTIONS(.ca_path = path), NULL, &why),
             JANUS_INVALID);
    return 0;
}

TEST("a file of authorities is read, or the sentence says what is wrong with it")
{
    char path[] = "/tmp/janusrt-tls-XXXXXX";
    int  made = mkstemp(path);
    CHECK(made >= 0);
    CHECK_EQ(close(made), 0);
    write_file(path, authority().chain);
    rig_run(1, create_in_task, path, 1);
}
