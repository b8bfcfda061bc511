/* SPDX-License-Identifier: MIT */
/* The calendar, and the three forms of a date. */
#include "http/date.h"

static const char days[7][10] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};
static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

enum { DAY_SECONDS = 86400 };

/* 0000-01-01 00:00:00 and 9999-12-31 23:59:59. */
static const int64_t first_second = INT64_C(-62167219200), last_second = INT64_C(253402300799);

struct moment {
    int64_t year;
    int     month, day, hour, minute, second, weekday; /* month from 0, day from 1, Sunday 0 */
};

/*
 * Days since 1970-01-01. The year begins in March here, so that the leap day is its last. Eras of
 * 400 years have 146097 days.
 */
static int64_t days_of(int64_t year, int month, int day)
{
    int64_t from_march = (month + 10) % 12;
    if (month < 2) year--;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t day_of_year = (153 * from_march + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719468;
}

static struct moment moment_of(int64_t seconds)
{
    int64_t day = seconds / DAY_SECONDS, rest = seconds % DAY_SECONDS;
    if (rest < 0) {
        rest += DAY_SECONDS;
        day--;
    }
    int64_t shifted = day + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t of_era = shifted - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t from_march = (5 * of_year + 2) / 153;
    int64_t weekday = (day + 4) % 7;
    return (struct moment){.year = year + era * 400 + (from_march >= 10),
                           .month = (int)((from_march + 2) % 12),
                           .day = (int)(of_year - (153 * from_march + 2) / 5 + 1),
                           .hour = (int)(rest / 3600),
                           .minute = (int)(rest / 60 % 60),
                           .second = (int)(rest % 60),
                           .weekday = (int)(weekday < 0 ? weekday + 7 : weekday)};
}

static void put_digits(char *out, int64_t number, int digits)
{
    while (digits-- > 0) {
        out[digits] = (char)('0' + number % 10);
        number /= 10;
    }
}

void jrt_http_date_write(char out[JRT_HTTP_DATE_BYTES], int64_t seconds)
{
    if (seconds < first_second) seconds = first_second;
    if (seconds > last_second) seconds = last_second;
    struct moment moment = moment_of(seconds);
    memcpy(out, "Sun, 06 Nov 1994 08:49:37 GMT", JRT_HTTP_DATE_BYTES);
    memcpy(out, days[moment.weekday], 3);
    put_digits(out + 5, moment.day, 2);
    memcpy(out + 8, months[moment.month], 3);
    put_digits(out + 12, moment.year, 4);
    put_digits(out + 17, moment.hour, 2);
    put_digits(out + 20, moment.minute, 2);
    put_digits(out + 23, moment.second, 2);
}

/* Reads a text from its front. `right` turns false at the first byte that does not fit. */
struct reader {
    struct jrt_http_text rest;
    bool                 right;
};

static void skip(struct reader *reader, const char *text, size_t bytes)
{
    if (reader->rest.bytes < bytes || memcmp(reader->rest.at, text, bytes) != 0) {
        reader->right = false;
        return;
    }
    reader->rest.at += bytes;
    reader->rest.bytes -= bytes;
}

static int digits(struct reader *reader, size_t count)
{
    int number = 0;
    if (reader->rest.bytes < count) reader->right = false;
    for (size_t i = 0; i < count && reader->right; i++) {
        if (!jrt_http_is_digit(reader->rest.at[0])) reader->right = false;
        number = number * 10 + (reader->rest.at[0] - '0');
        reader->rest.at++;
        reader->rest.bytes--;
    }
    return number;
}

static void read_month(struct reader *reader, struct moment *moment)
{
    for (int i = 0; i < 12; i++) {
        if (reader->rest.bytes < 3 || memcmp(reader->rest.at, months[i], 3) != 0) continue;
        moment->month = i;
        skip(reader, months[i], 3);
        return;
    }
    reader->right = false;
}

static void read_time(struct reader *reader, struct moment *moment)
{
    moment->hour = digits(reader, 2);
    skip(reader, ":", 1);
    moment->minute = digits(reader, 2);
    skip(reader, ":", 1);
    moment->second = digits(reader, 2);
}

/* "06 Nov 1994 08:49:37 GMT", behind "Sun, ". */
static void read_fixed(struct reader *reader, struct moment *moment)
{
    moment->day = digits(reader, 2);
    skip(reader, " ", 1);
    read_month(reader, moment);
    skip(reader, " ", 1);
    moment->year = digits(reader, 4);
    skip(reader, " ", 1);
    read_time(reader, moment);
    skip(reader, " GMT", 4);
}

/* "06-Nov-94 08:49:37 GMT", behind "Sunday, ". */
static void read_short_year(struct reader *reader, struct moment *moment, int64_t now)
{
    moment->day = digits(reader, 2);
    skip(reader, "-", 1);
    read_month(reader, moment);
    skip(reader, "-", 1);
    int64_t latest = moment_of(now).year + 50;
    int64_t year = digits(reader, 2);
    moment->year = latest - (latest - year) % 100;
    skip(reader, " ", 1);
    read_time(reader, moment);
    skip(reader, " GMT", 4);
}

/* "Nov  6 08:49:37 1994", behind "Sun ". */
static void read_c(struct reader *reader, struct moment *moment)
{
    read_month(reader, moment);
    skip(reader, " ", 1);
    if (reader->rest.bytes > 0 && reader->rest.at[0] == ' ') {
        skip(reader, " ", 1);
        moment->day = digits(reader, 1);
    } else {
        moment->day = digits(reader, 2);
        if (moment->day < 10) reader->right = false;
    }
    skip(reader, " ", 1);
    read_time(reader, moment);
    skip(reader, " ", 1);
    moment->year = digits(reader, 4);
}

/* Whether it is a day of the calendar, with the right day of the week. Second 60 may be a leap. */
static bool exists(const struct moment *moment)
{
    if (moment->day < 1 || moment->hour > 23 || moment->minute > 59 || moment->second > 60)
        return false;
    int64_t       day = days_of(moment->year, moment->month, moment->day);
    struct moment back = moment_of(day * DAY_SECONDS);
    return back.day == moment->day && back.month == moment->month &&
           back.weekday == moment->weekday;
}

bool jrt_http_date_read(struct jrt_http_text text, int64_t now, int64_t *out_seconds)
{
    struct moment moment = {0};
    struct reader reader = {text, true};
    if (now < first_second || now > last_second) now = 0;
    int day = 0;
    while (day < 7 && (text.bytes < 3 || memcmp(text.at, days[day], 3) != 0)) day++;
    if (day == 7) return false;
    moment.weekday = day;
    if (text.bytes > 3 && text.at[3] == ',') {
        skip(&reader, text.at, 4);
        skip(&reader, " ", 1);
        read_fixed(&reader, &moment);
    } else if (text.bytes > 3 && text.at[3] == ' ') {
        skip(&reader, text.at, 4);
        read_c(&reader, &moment);
    } else {
        skip(&reader, days[day], strlen(days[day]));
        skip(&reader, ", ", 2);
        read_short_year(&reader, &moment, now);
    }
    if (!reader.right || reader.rest.bytes > 0 || !exists(&moment)) return false;
    *out_seconds = days_of(moment.year, moment.month, moment.day) * DAY_SECONDS +
                   moment.hour * INT64_C(3600) + moment.minute * INT64_C(60) + moment.second;
    return true;
}
