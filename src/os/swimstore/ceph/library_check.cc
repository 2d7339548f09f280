// SPDX-License-Identifier: LGPL-2.1-or-later
// Is the libceph-common that the loader found the one this program was built for?
//
// The program shares classes with the library, not a stable interface: another release, or the same one with another
// patch in it, may lay them out differently, and memory would be damaged without a word. So this runs before anything
// else of the program: before the constructors of its globals, some of which use the library already.

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ceph_ver.h"
#include "common/version.h"

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

namespace {

constexpr std::string_view built_for_commit = TEXT(CEPH_GIT_VER);
constexpr std::string_view built_for_build = SWIM_CEPH_COMMON_BUILD_ID;
constexpr const char* override_name = "SWIMSTORE_ANY_LIBRARY_BUILD";

struct Library {
  ElfW(Addr) base = 0;
  std::string path;
  std::string build; // its build ID in hexadecimal; empty: it has none
};

size_t padded(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

std::string build_in_notes(const char* note, size_t bytes) {
  const char* const end = note + bytes;
  while (note + sizeof(ElfW(Nhdr)) <= end) {
    const auto* header = reinterpret_cast<const ElfW(Nhdr)*>(note);
    const char* name = note + sizeof(*header);
    const auto* id = reinterpret_cast<const unsigned char*>(name + padded(header->n_namesz));
    if (header->n_type == NT_GNU_BUILD_ID && std::string_view(name, header->n_namesz) == std::string_view("GNU", 4)) {
      std::string text;
      for (size_t i = 0; i < header->n_descsz; ++i) {
        char digits[3];
        std::snprintf(digits, sizeof(digits), "%02x", id[i]);
        text += digits;
      }
      return text;
    }
    note = reinterpret_cast<const char*>(id) + padded(header->n_descsz);
  }
  return {};
}

int take_build(dl_phdr_info* object, size_t, void* out) {
  auto& library = *static_cast<Library*>(out);
  if (object->dlpi_addr != library.base) {
    return 0;
  }
  for (int i = 0; i < object->dlpi_phnum && library.build.empty(); ++i) {
    const auto& header = object->dlpi_phdr[i];
    if (header.p_type == PT_NOTE) {
      library.build = build_in_notes(reinterpret_cast<const char*>(object->dlpi_addr + header.p_vaddr), header.p_memsz);
    }
  }
  return 1;
}

Library loaded_library() {
  Library library;
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(&git_version_to_str), &found) != 0 && found.dli_fname != nullptr) {
    library.base = reinterpret_cast<ElfW(Addr)>(found.dli_fbase);
    library.path = found.dli_fname;
    dl_iterate_phdr(take_build, &library);
  }
  return library;
}

bool any_build_is_allowed() {
  const char* text = std::getenv(override_name);
  return text != nullptr && std::string_view(text) == "1";
}

// 101 is the first that a program may have.
[[gnu::constructor(101)]] void check_library() {
  const Library library = loaded_library();
  const std::string_view commit = git_version_to_str();
  const bool other_release = commit != built_for_commit;
  if (!other_release && (library.build == built_for_build || any_build_is_allowed())) {
    return;
  }
  std::fprintf(
      stderr,
      "%s: error: %s is Ceph %s (commit %.12s, build %.12s), and this program was built for that "
      "of " SWIM_CEPH_COMMON_PACKAGE
      " (commit %.12s, build %.12s): install that version of the Ceph packages, or build "
      "SwimStore with those that are installed%s\n",
      program_invocation_short_name, library.path.c_str(), ceph_version_to_str(), commit.data(), library.build.c_str(),
      built_for_commit.data(), built_for_build.data(),
      other_release ? "" : (std::string("; ") + override_name + "=1 in its environment runs it all the same").c_str());
  std::_Exit(EXIT_FAILURE);
}

} // namespace
