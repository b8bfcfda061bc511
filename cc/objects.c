/* SPDX-License-Identifier: MIT */
/*
 * The notes of object files. The pass puts a note into each object, the section .note.janusrt, with
 * a flag for --untrusted. The linker's inputs must have it. This finds mistakes, such as a library
 * built without checks. It does not find forgeries: whoever writes an object file can write a note.
 */
#include "cc/cc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char section_name[] = ".note.janusrt";
enum { NOTE_TYPE = 1, NOTE_VERSION = 1, NOTE_UNTRUSTED = 1 };

struct bytes {
    const unsigned char *at;
    size_t               count;
};

/* A part of a file, or nothing if it is not wholly inside. */
static struct bytes part(struct bytes whole, uint64_t from, uint64_t count)
{
    struct bytes none = {.at = NULL};
    if (from > whole.count || count > whole.count - from) return none;
    return (struct bytes){whole.at + from, (size_t)count};
}

/* Every note must carry the flag: the linker joins the notes of all parts. */
static bool notes_are_good(struct bytes section)
{
    struct {
        uint32_t name_bytes, bytes, type;
        char     name[8];
        uint32_t version, flags;
    } note;
    if (section.count < sizeof note) return false;
    for (size_t at = 0; section.count - at >= sizeof note; at += sizeof note) {
        memcpy(&note, section.at + at, sizeof note);
        if (note.name_bytes != 8 || note.bytes != 8 || note.type != NOTE_TYPE ||
            memcmp(note.name, "janusrt", 8) != 0 || note.version != NOTE_VERSION ||
            (note.flags & NOTE_UNTRUSTED) == 0) {
            return false;
        }
    }
    return true;
}

static const char *name_of(struct bytes names, uint32_t offset)
{
    if (offset >= names.count || memchr(names.at + offset, 0, names.count - offset) == NULL) {
        return "";
    }
    return (const char *)names.at + offset;
}

/* Why the object is refused, or NULL. */
static const char *judge_object(struct bytes object)
{
    Elf64_Ehdr head;
    Elf64_Shdr section;
    if (object.count < sizeof head) return "it is not an object file";
    memcpy(&head, object.at, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_shentsize != sizeof section) {
        return "it is not a 64-bit ELF object file";
    }
    struct bytes table = part(object, head.e_shoff, (uint64_t)head.e_shnum * sizeof section);
    if (table.at == NULL || head.e_shstrndx >= head.e_shnum) return "its section table is broken";
    memcpy(&section, table.at + head.e_shstrndx * sizeof section, sizeof section);
    struct bytes names = part(object, section.sh_offset, section.sh_size);
    bool         code = false;
    for (size_t i = 0; i < head.e_shnum; i++) {
        memcpy(&section, table.at + i * sizeof section, sizeof section);
        if ((section.sh_flags & SHF_EXECINSTR) != 0 && section.sh_size > 0) code = true;
        if (names.at == NULL || strcmp(name_of(names, section.sh_name), section_name) != 0)
            continue;
        if (notes_are_good(part(object, section.sh_offset, section.sh_size))) return NULL;
        return "janusrt cc built it, but without --untrusted";
    }
    return code ? "janusrt cc --untrusted did not build it" : NULL;
}

static void judge_archive(struct bytes archive, const char *path)
{
    struct member {
        char name[16], date[12], owner[6], group[6], mode[8], size[10], end[2];
    } member;
    for (size_t at = 8; archive.count - at >= sizeof member;) {
        char size[11] = "";
        memcpy(&member, archive.at + at, sizeof member);
        memcpy(size, member.size, sizeof member.size);
        uint64_t     bytes = strtoull(size, NULL, 10);
        struct bytes inside = part(archive, at + sizeof member, bytes);
        if (inside.at == NULL || memcmp(member.end, "`\n", 2) != 0) {
            cc_refuse("%s: the archive is broken at byte %zu", path, at);
        }
        bool table = member.name[0] == '/' && (member.name[1] == ' ' || member.name[1] == '/' ||
                                               memcmp(member.name, "/SYM64/", 7) == 0);
        const char *why = table ? NULL : judge_object(inside);
        if (why != NULL) {
            cc_refuse("%s(%.*s): %s; build it with janusrt cc --untrusted", path,
                      (int)strcspn(member.name, "/ "), member.name, why);
        }
        at += sizeof member + bytes + (bytes & 1);
        if (at > archive.count) break;
    }
}

static void judge_file(const char *path)
{
    int         file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0) return; /* clang says that there is no such file */
    if (fstat(file, &status) != 0) cc_refuse("%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode) || status.st_size < 8) {
        (void)close(file);
        return;
    }
    size_t       bytes = (size_t)status.st_size;
    struct bytes whole = {mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0), bytes};
    if (whole.at == MAP_FAILED) cc_refuse("%s: %s", path, strerror(errno));
    const char *why = NULL;
    if (memcmp(whole.at, "!<arch>\n", 8) == 0)
        judge_archive(whole, path);
    else if (memcmp(whole.at, "!<thin>\n", 8) == 0)
        why = "a thin archive cannot be checked";
    else if (memcmp(whole.at, ELFMAG, SELFMAG) == 0)
        why = judge_object(whole);
    if (why != NULL) cc_refuse("%s: %s; build it with janusrt cc --untrusted", path, why);
    (void)munmap((void *)whole.at, bytes);
    (void)close(file);
}

void cc_objects_check(const struct cc_facts *facts)
{
    for (size_t i = 0; i < facts->inputs.count; i++) judge_file(facts->inputs.at[i]);
}
