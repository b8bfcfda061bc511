/* SPDX-License-Identifier: MIT */
/* Certificates of a server: files, reloads, several names, sessions. */
#include "../task/caps.h"
#include "raw.h"
#include "tls/tls.h"

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, "text/plain", "Hello!\n", 7);
}

#define ASK "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

/* Shakes hands, and says whether the server shows a certificate for `name`. */
static bool shows(struct talk *talk, const char *wanted, const char *name)
{
    struct raw raw = raw_make(talk_open(talk), NULL);
    raw_start(&raw, false);
    if (wanted != NULL) CHECK_EQ(SSL_set_tlsext_host_name(raw.ssl, wanted), 1);
    CHECK(raw_shake(&raw));
    X509 *certificate = SSL_get1_peer_certificate(raw.ssl);
    bool  good = X509_check_host(certificate, name, 0, 0, NULL) == 1;
    X509_free(certificate);
    CHECK(raw_put(&raw, ASK));
    CHECK_EQ(raw_rest(&raw, talk->text, TALK_BYTES), SSL_ERROR_ZERO_RETURN);
    raw_end(&raw);
    return good;
}

static janus_status reload(struct paper paper, janus_tls_why *why)
{
    janus_tls_certificate one = {.chain_text = paper.chain, .key_text = paper.key};
    return janus_tls_server_reload(tls_server, &one, 1, why);
}

static void reload_once(struct talk *talk)
{
    janus_tls_why      why = {""};
    janus_http_client *client = secure_client();
    secure_get(talk, client, "/", "Hello!\n");
    CHECK(shows(talk, NULL, "localhost"));
    CHECK_EQ(reload(paper_for(authority(), "DNS:new.example"), &why), JANUS_OK);
    CHECK_STR(why.text, "");
    CHECK(shows(talk, NULL, "new.example"));
    secure_get(talk, client, "/", "Hello!\n"); /* on the connection that stands */
    CHECK_EQ(look(client).connects, 1);
    struct paper wrong = {paper_for(authority(), "DNS:a").chain,
                          paper_for(authority(), "DNS:a").key};
    CHECK_EQ(reload(wrong, &why), JANUS_INVALID);
    CHECK(strstr(why.text, "the key in memory has another key than that of the first") != NULL);
    CHECK_EQ(reload((struct paper){"nothing", wrong.key}, &why), JANUS_INVALID);
    CHECK_STR(why.text, "the chain in memory has no certificate");
    CHECK_EQ(reload((struct paper){wrong.chain, "nothing"}, &why), JANUS_INVALID);
    CHECK(strstr(why.text, "has no key that can be read") != NULL);
    CHECK_EQ(reload((struct paper){wrong.chain, NULL}, &why), JANUS_INVALID);
    CHECK_EQ(janus_tls_server_reload(tls_server, NULL, 0, &why), JANUS_STATE);
    CHECK(shows(talk, NULL, "new.example"));
    CHECK_EQ(look_tls(tls_server).reloads, 1);
    janus_http_client_destroy(client);
}

TEST("a reload is for new connections, and a bad one changes nothing and says why")
{
    secure_run((struct talk){.handler = greet, .client = reload_once});
}

TEST("a key that is too weak is refused")
{
    janus_tls_why         why = {""};
    janus_tls_server     *server = NULL;
    struct paper          weak = paper_rsa(authority(), NAMES, 1024);
    janus_tls_certificate one = {.chain_text = weak.chain, .key_text = weak.key};
    CHECK_EQ(janus_tls_server_create(&one, 1, NULL, &server, &why), JANUS_INVALID);
    CHECK(strstr(why.text, "ee key too small") != NULL);
}

static void ask_names(struct talk *talk)
{
    CHECK(shows(talk, "localhost", "localhost"));
    CHECK(shows(talk, "two.example", "two.example"));
    CHECK(shows(talk, "a.three.example", "a.three.example"));
    CHECK(shows(talk, "elsewhere.example", "localhost"));
    CHECK(shows(talk, NULL, "localhost"));
    CHECK(!shows(talk, "localhost", "two.example"));
    janus_tls_why why;
    CHECK_EQ(reload(paper_for(authority(), "DNS:four.example"), &why), JANUS_OK);
    CHECK(shows(talk, "two.example", "four.example"));
    CHECK_EQ(look_tls(tls_server).certificates, 1);
}

TEST("of several certificates the server shows the one for the name, or the first")
{
    static const char *const names[] = {NAMES, "DNS:two.example", "DNS:*.three.example"};
    janus_tls_certificate    all[3] = {{NULL, NULL, NULL, NULL}};
    for (int i = 0; i < 3; i++) {
        struct paper paper = paper_for(authority(), names[i]);
        all[i] = (janus_tls_certificate){.chain_text = paper.chain, .key_text = paper.key};
    }
    CHECK_EQ(janus_tls_server_create(all, 3, NULL, &tls_server, NULL), JANUS_OK);
    CHECK_EQ(look_tls(tls_server).certificates, 3);
    secure_run((struct talk){.handler = greet, .client = ask_names});
}

enum { ROUNDS = 30, CALLERS = 4 };

static atomic_int callers_left;

static int64_t call_often(void *argument)
{
    struct talk *talk = argument;
    for (uint64_t i = 0; i < rig_few(200); i++) {
        janus_http_client *client = secure_client();
        secure_get(talk, client, "/", "Hello!\n");
        secure_get(talk, client, "/", "Hello!\n");
        janus_http_client_destroy(client);
    }
    atomic_fetch_sub(&callers_left, 1);
    return 0;
}

static void reload_often(struct talk *talk)
{
    janus_status status;
    struct paper papers[2] = {own_paper(), paper_for(authority(), NAMES)};
    atomic_store(&callers_left, CALLERS);
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < CALLERS; i++) CHECK_EQ(janus_spawn(n, call_often, talk), JANUS_OK);
        for (int i = 0; i < ROUNDS || atomic_load(&callers_left) > 0; i++) {
            CHECK_EQ(reload(papers[i % 2], NULL), JANUS_OK);
            CHECK_EQ(janus_sleep(JANUS_MS), JANUS_OK); /* the simulated clock must go on */
        }
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(look_tls(tls_server).failures, 0);
}

TEST("reloads under load fail no call")
{
    secure_run((struct talk){.handler = greet, .client = reload_often, .workers = 4});
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

static char chain_path[64], key_path[64];

static void reload_files(struct talk *talk)
{
    janus_tls_why why = {""};
    struct paper  renewed = paper_for(authority(), "DNS:renewed.example");
    CHECK(shows(talk, NULL, "localhost"));
    write_file(chain_path, renewed.chain);
    CHECK_EQ(janus_tls_server_reload(tls_server, NULL, 0, &why), JANUS_INVALID);
    CHECK(strstr(why.text, key_path) == why.text);
    write_file(key_path, renewed.key);
    CHECK_EQ(janus_tls_server_reload(tls_server, NULL, 0, &why), JANUS_OK);
    CHECK(shows(talk, NULL, "renewed.example"));
    CHECK_EQ(unlink(key_path), 0);
    CHECK_EQ(janus_tls_server_reload(tls_server, NULL, 0, &why), JANUS_NOT_FOUND);
    CHECK(strstr(why.text, key_path) == why.text);
    CHECK(shows(talk, NULL, "renewed.example"));
}

/* A task that may not read files. */
static int64_t create_forbidden(void *argument)
{
    janus_tls_why     why = {""};
    janus_tls_server *server = NULL;
    CHECK_EQ(janus_tls_server_create(argument, 1, NULL, &server, &why), JANUS_NO_FILE_CAP);
    CHECK(strstr(why.text, chain_path) == why.text);
    return 0;
}

TEST("files are read again by a reload, with the rights of the caller")
{
    char folder[] = "/tmp/janusrt-tls-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(chain_path, sizeof chain_path, "%s/chain.pem", folder);
    (void)snprintf(key_path, sizeof key_path, "%s/key.pem", folder);
    write_file(chain_path, own_paper().chain);
    write_file(key_path, own_paper().key);
    janus_tls_certificate one = {.chain_path = chain_path, .key_path = key_path};
    caps_all(create_forbidden, &one);
    CHECK_EQ(janus_tls_server_create(&one, 1, NULL, &tls_server, NULL), JANUS_OK);
    secure_run((struct talk){.handler = greet, .client = reload_files});
    CHECK_EQ(unlink(chain_path), 0);
    CHECK_EQ(rmdir(folder), 0);
}

/* Shakes hands, with a session of before, and keeps the new one. Returns whether it was resumed. */
static bool resume(struct talk *talk, SSL_SESSION **session, int version)
{
    struct raw raw = raw_make(talk_open(talk), NULL);
    CHECK_EQ(SSL_CTX_set_max_proto_version(raw.context, version), 1);
    raw_start(&raw, false);
    if (*session != NULL) CHECK_EQ(SSL_set_session(raw.ssl, *session), 1);
    CHECK(raw_shake(&raw));
    CHECK(raw_put(&raw, ASK));
    CHECK_EQ(raw_rest(&raw, talk->text, TALK_BYTES), SSL_ERROR_ZERO_RETURN);
    bool resumed = SSL_session_reused(raw.ssl) == 1;
    SSL_SESSION_free(*session);
    *session = SSL_SESSION_dup(SSL_get0_session(raw.ssl)); /* the end marks its own as used up */
    raw_end(&raw);
    return resumed;
}

static void resume_all(struct talk *talk)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (int i = 0; i < 2; i++) {
        SSL_SESSION *session = NULL;
        CHECK(!resume(talk, &session, versions[i]));
        CHECK(resume(talk, &session, versions[i]));
        CHECK_EQ(reload(own_paper(), NULL), JANUS_OK);
        CHECK(resume(talk, &session, versions[i]));
        CHECK_EQ(janus_sleep(90 * 60 * JANUS_SECONDS), JANUS_OK);
        CHECK(resume(talk, &session, versions[i])); /* by the key before */
        CHECK_EQ(janus_sleep(130 * 60 * JANUS_SECONDS), JANUS_OK);
        CHECK(!resume(talk, &session, versions[i]));
        SSL_SESSION_free(session);
    }
    CHECK_EQ(look_tls(tls_server).resumed, 6);
}

TEST("a ticket resumes a session, also after a reload, until its key is two hours old")
{
    secure_run((struct talk){.handler = greet, .client = resume_all, .seed = 9});
}

static void resume_with_younger(struct talk *talk)
{
    SSL_SESSION *session = NULL;
    CHECK(!resume(talk, &session, TLS1_3_VERSION));
    /* Another handshake, which has looked at the clock later, has made the key. */
    tls_server->keys[0].born_ns += JANUS_SECONDS;
    CHECK(resume(talk, &session, TLS1_3_VERSION));
    SSL_SESSION_free(session);
}

TEST("a key that is younger than the step of a handshake is used, and not replaced")
{
    secure_run((struct talk){.handler = greet, .client = resume_with_younger, .seed = 9});
}

static void resume_often(struct talk *talk)
{
    SSL_SESSION *session = NULL;
    CHECK(!resume(talk, &session, TLS1_3_VERSION));
    for (int i = 0; i < 3; i++) {
        const unsigned char *used, *got;
        size_t               used_bytes, got_bytes;
        SSL_SESSION         *before = SSL_SESSION_dup(session);
        CHECK(resume(talk, &session, TLS1_3_VERSION));
        SSL_SESSION_get0_ticket(before, &used, &used_bytes);
        SSL_SESSION_get0_ticket(session, &got, &got_bytes);
        CHECK(used_bytes != got_bytes || memcmp(used, got, got_bytes) != 0);
        SSL_SESSION_free(before);
    }
    SSL_SESSION_free(session);
}

TEST("a client that resumes gets a new ticket, because it uses each one once")
{
    secure_run((struct talk){.handler = greet, .client = resume_often});
}

static void resume_not(struct talk *talk)
{
    SSL_SESSION *session = NULL;
    CHECK(!resume(talk, &session, TLS1_3_VERSION));
    CHECK(!resume(talk, &session, TLS1_3_VERSION));
    SSL_SESSION_free(session);
    session = NULL;
    CHECK(!resume(talk, &session, TLS1_2_VERSION));
    CHECK(!resume(talk, &session, TLS1_2_VERSION));
    SSL_SESSION_free(session);
}

TEST("without tickets every handshake is a full one")
{
    tls_server = server_of(own_paper(), JANUS_TLS_SERVER_OPTIONS(.no_tickets = true));
    secure_run((struct talk){.handler = greet, .client = resume_not});
}

TEST("bad arguments are refused")
{
    janus_tls_server     *server = NULL;
    janus_tls_why         why;
    janus_tls_certificate both = {"a", "b", "c", "d"}, none = {NULL, NULL, NULL, NULL};
    CHECK_EQ(janus_tls_server_create(NULL, 1, NULL, &server, &why), JANUS_INVALID);
    CHECK(why.text[0] != '\0');
    CHECK_EQ(janus_tls_server_create(&both, 0, NULL, &server, NULL), JANUS_INVALID);
    CHECK_EQ(janus_tls_server_create(&both, 1, NULL, &server, NULL), JANUS_INVALID);
    CHECK_EQ(janus_tls_server_create(&none, 1, NULL, &server, NULL), JANUS_INVALID);
    CHECK_EQ(janus_tls_server_create(&none, JANUS_TLS_CERTIFICATES_MAX + 1, NULL, &server, NULL),
             JANUS_FULL);
    CHECK_EQ(janus_tls_server_reload(NULL, NULL, 0, NULL), JANUS_INVALID);
    CHECK_EQ(janus_tls_server_inspect(NULL, NULL), JANUS_INVALID);
    CHECK(janus_tls_server_wire(NULL) == NULL);
    CHECK(janus_tls_client_wire(NULL) == NULL);
    janus_tls_server_destroy(NULL);
    janus_tls_client_destroy(NULL);
    CHECK(server == NULL);
}
