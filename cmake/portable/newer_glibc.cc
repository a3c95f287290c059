// For ROLLCALL_PORTABLE: the two functions of a newer glibc that GCC 12's libraries need when they are linked
// statically, so that the program runs on glibc 2.34.
//
// The unwinder needs _dl_find_object (2.35), which says which object contains an address, and where its exception
// tables begin; see glibc's manual, "Dynamic Linker Introspection". This version finds the answer in the older way.
// std::random_device needs arc4random (2.36), which returns the kernel's randomness.

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>

#include <sys/random.h>

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (::getrandom(&value, sizeof value, 0) != sizeof value) {
    std::abort();  // Linux before 3.17 had no getrandom, and there is no substitute
  }
  return value;
}

#if defined(DLFO_EH_SEGMENT_TYPE)

namespace {

struct Question {
  std::uintptr_t address;
  dl_find_object* answer;
};

int look_at(dl_phdr_info* object, std::size_t, void* asked) {
  const auto& question = *static_cast<const Question*>(asked);
  bool is_inside = false;
  const ElfW(Phdr)* tables = nullptr;
  std::uintptr_t begin = UINTPTR_MAX;
  std::uintptr_t end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const std::uintptr_t first = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) {
      begin = first < begin ? first : begin;
      end = first + part.p_memsz > end ? first + part.p_memsz : end;
      is_inside = is_inside || (question.address >= first && question.address < first + part.p_memsz);
    } else if (part.p_type == DLFO_EH_SEGMENT_TYPE) {
      tables = &part;
    }
  }
  if (!is_inside || tables == nullptr) {
    return 0;
  }
  *question.answer = {};
  question.answer->dlfo_map_start = reinterpret_cast<void*>(begin);
  question.answer->dlfo_map_end = reinterpret_cast<void*>(end);
  question.answer->dlfo_eh_frame = reinterpret_cast<void*>(object->dlpi_addr + tables->p_vaddr);
  return 1;
}

}  // namespace

extern "C" int _dl_find_object(void* address, dl_find_object* answer) noexcept {
  Question question{reinterpret_cast<std::uintptr_t>(address), answer};
  return dl_iterate_phdr(look_at, &question) == 1 ? 0 : -1;
}

#endif
