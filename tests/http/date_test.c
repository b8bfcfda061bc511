/* SPDX-License-Identifier: MIT */
/* Dates, beside those of the C library. */
#include "harness.h"
#include "http/date.h"

#include <stdio.h>
#include <time.h>

static bool reads(const char *text, int64_t now, int64_t want)
{
    int64_t seconds = 1;
    return jrt_http_date_read((struct jrt_http_text){text, strlen(text)}, now, &seconds) &&
           seconds == want;
}

static bool refuses(const char *text)
{
    int64_t seconds = 42;
    return !jrt_http_date_read((struct jrt_http_text){text, strlen(text)}, 0, &seconds) &&
           seconds == 42;
}

/* What the C library writes for the same second. */
static void by_the_library(char out[64], int64_t seconds)
{
    struct tm tm;
    time_t    time = (time_t)seconds;
    CHECK(gmtime_r(&time, &tm) != NULL);
    CHECK(strftime(out, 64, "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0);
}

TEST("a date is written as the C library writes it, and read back, for each week of 400 years")
{
    for (int64_t week = 0; week < 20872; week++) {
        int64_t seconds = week * 604800 + week * 86399 % 604800 - 3000000000;
        char    want[64], got[JRT_HTTP_DATE_BYTES + 1] = {0};
        by_the_library(want, seconds);
        jrt_http_date_write(got, seconds);
        CHECK_STR(got, want);
        CHECK(reads(got, 0, seconds));
    }
}

TEST("the three forms of one second are the same second")
{
    CHECK(reads("Sun, 06 Nov 1994 08:49:37 GMT", 0, 784111777));
    CHECK(reads("Sunday, 06-Nov-94 08:49:37 GMT", 784111777, 784111777));
    CHECK(reads("Sun Nov  6 08:49:37 1994", 0, 784111777));
    CHECK(reads("Wed Nov 16 08:49:37 1994", 0, 784111777 + 864000));
}

TEST("two digits of a year mean a year at most 50 years ahead")
{
    int64_t in_2026 = 1794000000;
    CHECK(reads("Friday, 01-Jan-76 00:00:00 GMT", in_2026, 3345062400) == false); /* a Wednesday */
    CHECK(reads("Wednesday, 01-Jan-76 00:00:00 GMT", in_2026, 3345062400));       /* 2076 */
    CHECK(reads("Saturday, 01-Jan-77 00:00:00 GMT", in_2026, 220924800));         /* 1977 */
    CHECK(reads("Thursday, 01-Jan-26 00:00:00 GMT", in_2026, 1767225600));
}

TEST("a leap second is the first second of the next minute")
{
    CHECK(reads("Sat, 31 Dec 2016 23:59:60 GMT", 0, 1483228800));
    CHECK(refuses("Sat, 31 Dec 2016 23:59:61 GMT"));
}

TEST("a leap day exists in leap years only")
{
    CHECK(reads("Tue, 29 Feb 2000 00:00:00 GMT", 0, 951782400));
    CHECK(refuses("Thu, 29 Feb 1900 00:00:00 GMT"));
    CHECK(refuses("Wed, 29 Feb 2023 00:00:00 GMT"));
    CHECK(refuses("Thu, 01 Mar 1900 00:00:00 GMT ")); /* right, but for the space */
}

TEST("a text that is not exactly a date is refused")
{
    static const char *const wrong[] = {"",
                                        "Sun",
                                        "Sun,",
                                        "Sun, ",
                                        "Sun, 06 Nov 1994 08:49:37",
                                        "Sun, 06 Nov 1994 08:49:37 UTC",
                                        "Sun, 06 Nov 1994 08:49:37 GMTx",
                                        " Sun, 06 Nov 1994 08:49:37 GMT",
                                        "sun, 06 nov 1994 08:49:37 gmt",
                                        "Mon, 06 Nov 1994 08:49:37 GMT",
                                        "Sun, 6 Nov 1994 08:49:37 GMT",
                                        "Sun, 06 Nov 94 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 8:49:37 GMT",
                                        "Sun, 06 Nov 1994 24:00:00 GMT",
                                        "Sun, 06 Nov 1994 08:60:37 GMT",
                                        "Sun, 00 Nov 1994 08:49:37 GMT",
                                        "Sun, 31 Nov 1994 08:49:37 GMT",
                                        "Sun, 06 Foo 1994 08:49:37 GMT",
                                        "Sun, +6 Nov 1994 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 08:49:37 +0000",
                                        "Sunday, 06 Nov 94 08:49:37 GMT",
                                        "Sun Nov 6 08:49:37 1994",
                                        "Sun Nov 06 08:49:37 1994",
                                        "Sun Nov  6 08:49:37 1994 GMT",
                                        "784111777",
                                        "1994-11-06T08:49:37Z"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) CHECK(refuses(wrong[i]));
    CHECK(refuses("Sun, 06-Nov-1994 08:49:37 GMT"));
}

TEST("times that four digits of a year cannot name become the nearest that they can")
{
    char text[JRT_HTTP_DATE_BYTES + 1] = {0};
    jrt_http_date_write(text, INT64_MIN);
    CHECK_STR(text, "Sat, 01 Jan 0000 00:00:00 GMT");
    jrt_http_date_write(text, INT64_MAX);
    CHECK_STR(text, "Fri, 31 Dec 9999 23:59:59 GMT");
}
