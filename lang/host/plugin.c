/* SPDX-License-Identifier: MIT */
/*
 * Plugins behind interfaces. A plugin is a shared object that `janusrt cc --untrusted` has built.
 * Each method is an exported C function of its name. A number is passed as the C type of its size.
 * A str or a slice is passed as struct janus_slice by value, with a copy of the bytes:
 *
 *     struct janus_slice { void *items; int64_t length; };
 *     struct janus_slice process(struct janus_slice data);
 *
 * The copy is memory of the calling task, and so is what the plugin gets by janus_alloc. The result
 * is copied as well. A method has at most six words (a slice counts as two) and eight f64.
 *
 * A WebAssembly module will be a plugin too. `judge` knows it by its first bytes and refuses it.
 * jl_interface_call is the place where it will be entered, with the same copies in and out.
 */
#include "host/plugin.h"

#include "host/state.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MAX = 6, FLOATS_MAX = 8, PLUGINS_MAX = 64, NOTE_NAME_BYTES = 8 };

struct jl_instance {
    const struct jl_interface_type *type;
    void                           *functions[];
};

static void            *loaded[PLUGINS_MAX]; /* plugins stay until the process ends */
static char            *paths[PLUGINS_MAX];
static _Atomic uint32_t loaded_count;
static atomic_flag      loading = ATOMIC_FLAG_INIT;

/* The note that the compiler's plugin puts into each object, as cc/objects.c reads it. */
struct note {
    uint32_t name_bytes, bytes, type;
    char     name[NOTE_NAME_BYTES];
    uint32_t version, flags;
};

static bool note_is_good(const unsigned char *at)
{
    struct note note;
    memcpy(&note, at, sizeof note);
    return note.name_bytes == NOTE_NAME_BYTES && note.bytes == 8 && note.type == 1 &&
           memcmp(note.name, "janusrt", NOTE_NAME_BYTES) == 0 && note.version == 1 &&
           (note.flags & 1) != 0;
}

static bool notes_are_good(const unsigned char *file, size_t size, uint64_t offset, uint64_t bytes)
{
    if (offset > size || bytes > size - offset || bytes < sizeof(struct note)) return false;
    for (uint64_t at = 0; bytes - at >= sizeof(struct note); at += sizeof(struct note)) {
        if (!note_is_good(file + offset + at)) return false;
    }
    return true;
}

/* Why the file is no plugin; NULL: it is one. */
static const char *judge(const unsigned char *file, size_t size)
{
    static const char not_untrusted[] =
        "it was not built by `janusrt cc --untrusted -shared`, so nothing would stop it";
    Elf64_Ehdr head;
    Elf64_Shdr section;
    if (size >= 4 && memcmp(file, "\0asm", 4) == 0) {
        return "it is a WebAssembly module, and no engine for these is built in yet; build the "
               "plugin with `janusrt cc --untrusted -shared`";
    }
    if (size < sizeof head || memcmp(file, ELFMAG, SELFMAG) != 0) return "it is not a plugin";
    memcpy(&head, file, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_type != ET_DYN ||
        head.e_shentsize != sizeof section || head.e_shoff > size ||
        (uint64_t)head.e_shnum * sizeof section > size - head.e_shoff) {
        return "it is not a shared object";
    }
    const unsigned char *table = file + head.e_shoff;
    bool                 found = false;
    for (uint32_t i = 0; i < head.e_shnum; i++) {
        memcpy(&section, table + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOTE || section.sh_offset > size - sizeof(struct note)) continue;
        const unsigned char *at = file + section.sh_offset;
        if (memcmp(at + 12, "janusrt", NOTE_NAME_BYTES) != 0) continue;
        found = true;
        if (!notes_are_good(file, size, section.sh_offset, section.sh_size)) return not_untrusted;
    }
    return found ? NULL : not_untrusted;
}

static const char *judge_file(const char *path)
{
    const char *why = NULL;
    int         fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat state;
    if (fd < 0 || fstat(fd, &state) != 0) {
        if (fd >= 0) (void)close(fd);
        return "there is no such file";
    }
    size_t size = state.st_size > 0 ? (size_t)state.st_size : 0;
    void  *file = size > 0 ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    (void)close(fd);
    if (file == MAP_FAILED) return "it is empty, or cannot be read";
    why = judge(file, size);
    (void)munmap(file, size);
    return why;
}

static uint32_t load(const char *path, const char **why)
{
    uint32_t count = atomic_load(&loaded_count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(paths[i], path) == 0) return i;
    }
    *why = judge_file(path);
    if (*why) return 0;
    if (count == PLUGINS_MAX) {
        *why = "a program can load 64 plugins";
        return 0;
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    char *copy = strdup(path);
    if (!object || !copy) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps the text for each thread */
        *why = object ? "there is no memory" : dlerror();
        free(copy);
        return 0;
    }
    loaded[count] = object;
    paths[count] = copy;
    atomic_store(&loaded_count, count + 1);
    return count;
}

int64_t jl_prelude_load_plugin(void *result, const void *const *arguments)
{
    const struct jl_text *path = arguments[0];
    char                  text[1024], full[1040];
    const char           *why = NULL;
    if (path->length < 1 || path->length >= (int64_t)sizeof text ||
        memchr(path->bytes, 0, (size_t)path->length)) {
        return janus_explain_as(JANUS_NOT_FOUND, "load_untrusted_plugin", "the path is no path");
    }
    memcpy(text, path->bytes, (size_t)path->length);
    text[path->length] = '\0';
    /* dlopen searches folders of the system for a name without a slash. */
    (void)snprintf(full, sizeof full, "%s%s", strchr(text, '/') ? "" : "./", text);
    while (atomic_flag_test_and_set_explicit(&loading, memory_order_acquire)) {
    }
    uint32_t index = load(full, &why);
    atomic_flag_clear_explicit(&loading, memory_order_release);
    if (why) {
        fprintf(stderr, "janusrt: load_untrusted_plugin: %s: %s\n", text, why);
        return JANUS_NOT_FOUND;
    }
    *(struct jl_handle *)result = (struct jl_handle){{index + 1, 0}};
    return 0;
}

__attribute__((noreturn, format(printf, 2, 3))) static void refuse(uint64_t    place,
                                                                   const char *format, ...)
{
    char    text[160];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    jl_panic((struct jl_text){text, (int64_t)strlen(text)}, place);
}

static void check_size(const struct jl_method *method, uint64_t place)
{
    uint32_t words = 0, floats = 0;
    for (uint32_t i = 0; i < method->param_count; i++) {
        words += method->params[i].cross == JL_CROSS_SLICE  ? 2
                 : method->params[i].cross == JL_CROSS_WORD ? 1
                                                            : 0;
        floats += method->params[i].cross == JL_CROSS_F64;
    }
    if (words > WORDS_MAX || floats > FLOATS_MAX) {
        refuse(place, "the method %s has more than six words of parameters", method->name);
    }
}

/* A function of the plugin itself. dlsym also finds those of the libraries it needs, so a method
 * with the name `system` would call the C library. */
static void *function_of(void *object, const char *name)
{
    struct link_map *own = NULL, *found = NULL;
    Dl_info          info;
    void            *function = dlsym(object, name);
    if (!function || dlinfo(object, RTLD_DI_LINKMAP, &own) != 0) return NULL;
    if (dladdr1(function, &info, (void **)&found, RTLD_DL_LINKMAP) == 0) return NULL;
    return found == own ? function : NULL;
}

struct jl_instance *jl_to_interface(struct jl_handle plugin, const struct jl_interface_type *type,
                                    uint64_t place)
{
    uint64_t index = plugin.word[0] - 1;
    if (index >= atomic_load(&loaded_count)) refuse(place, "there is no plugin here");
    struct jl_instance *instance =
        jl_task_memory(sizeof *instance + type->method_count * sizeof(void *));
    instance->type = type;
    for (uint32_t i = 0; i < type->method_count; i++) {
        check_size(&type->methods[i], place);
        instance->functions[i] = function_of(loaded[index], type->methods[i].name);
        if (!instance->functions[i]) {
            refuse(place, "the plugin does not export %s, which %s needs", type->methods[i].name,
                   type->name);
        }
    }
    return instance;
}

/* A register holds the number extended to 64 bits, as the calling conventions want it. */
static uint64_t word_of(const void *value, uint32_t bytes)
{
    uint64_t word = 0;
    uint32_t bits = (bytes & ~(unsigned)JL_CROSS_UNSIGNED) * 8;
    memcpy(&word, value, bits / 8);
    if ((bytes & JL_CROSS_UNSIGNED) != 0 || bits >= 64) return word;
    return (uint64_t)((int64_t)(word << (64 - bits)) >> (64 - bits));
}

#define PROTOTYPE                                                                                  \
    (uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double, double, double, double,   \
     double, double, double, double)
#define CALL(function)                                                                             \
    (function)(w[0], w[1], w[2], w[3], w[4], w[5], f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7])

/* Unused registers hold zeros. The calling conventions of x86-64 and AArch64 allow that. */
static void call(void *function, const struct jl_method *method, const uint64_t *w, const double *f,
                 void *result)
{
    union {
        void *object;
        void(*nothing) PROTOTYPE;
        uint64_t(*word) PROTOTYPE;
        double(*number) PROTOTYPE;
        struct jl_slice(*slice) PROTOTYPE;
    } as = {function};
    switch (method->result.cross) {
    case JL_CROSS_WORD: {
        uint64_t word = CALL(as.word);
        memcpy(result, &word, method->result.bytes & ~(unsigned)JL_CROSS_UNSIGNED);
        break;
    }
    case JL_CROSS_F64: {
        double number = CALL(as.number);
        memcpy(result, &number, sizeof number);
        break;
    }
    case JL_CROSS_SLICE: {
        struct jl_slice slice = CALL(as.slice);
        memcpy(result, &slice, sizeof slice);
        break;
    }
    default: CALL(as.nothing); break;
    }
}

static void *copy_of(const void *items, int64_t length, uint32_t bytes)
{
    size_t size = 0;
    if (length <= 0 || bytes == 0) return NULL;
    if (__builtin_mul_overflow((size_t)length, (size_t)bytes, &size)) size = SIZE_MAX / 2;
    void *copy = jl_task_memory(size);
    jl_pay_bytes(size);
    memcpy(copy, items, size);
    return copy;
}

int64_t jl_interface_call(struct jl_instance *instance, uint32_t method,
                          const void *const *arguments, void *result)
{
    const struct jl_method *of = &instance->type->methods[method];
    uint64_t                words[WORDS_MAX] = {0};
    double                  floats[FLOATS_MAX] = {0};
    uint32_t                word = 0, number = 0;
    for (uint32_t i = 0; i < of->param_count; i++) {
        const struct jl_slice *slice = arguments[i];
        switch (of->params[i].cross) {
        case JL_CROSS_WORD: words[word++] = word_of(arguments[i], of->params[i].bytes); break;
        case JL_CROSS_F64: memcpy(&floats[number++], arguments[i], sizeof(double)); break;
        default:
            words[word++] =
                (uint64_t)(uintptr_t)copy_of(slice->items, slice->length, of->params[i].bytes);
            words[word++] = (uint64_t)slice->length;
            break;
        }
    }
    call(instance->functions[method], of, words, floats, result);
    if (of->result.cross == JL_CROSS_SLICE) {
        struct jl_slice *slice = result;
        if (slice->length < 0 || (slice->length > 0 && !slice->items)) return JANUS_INVALID;
        slice->items = copy_of(slice->items, slice->length, of->result.bytes);
    }
    return 0;
}
