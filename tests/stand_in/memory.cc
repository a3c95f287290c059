#include "tests/stand_in/memory.h"

#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/stand_in/rules.h"

namespace rollcall::stand_in {
namespace {

constexpr std::size_t alignment = 256;  // as for cudaMalloc
constexpr int memory_protection = PROT_READ | PROT_WRITE;

struct Block {
  std::size_t bytes = 0;
  int device = 0;
};

struct Memory {
  Memory() {
    descriptor = ::memfd_create("rollcall-stand-in", MFD_CLOEXEC);
    require(descriptor >= 0 && ::ftruncate(descriptor, memory_size) == 0, "no memory for the stand-in's GPU");
    shown = map(PROT_NONE);
    inner = map(memory_protection);
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      if (is_device_memory(info->si_addr)) {
        break_off("the host touched memory of a GPU");
      }
      std::signal(SIGSEGV, SIG_DFL);  // the access faults again
    };
    ::sigaction(SIGSEGV, &action, nullptr);
  }

  std::byte* map(int protection) const {
    void* place = ::mmap(nullptr, memory_size, protection, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    require(place != MAP_FAILED, "no addresses for the stand-in's GPU");
    return static_cast<std::byte*>(place);
  }

  int descriptor = -1;
  std::byte* shown = nullptr;
  std::byte* inner = nullptr;
  std::mutex mutex;
  std::map<std::size_t, Block> blocks;  // by offset
  std::map<const std::byte*, std::size_t> pinned;
};

// Never destroyed: streams may still run when the process ends.
Memory& memory() {
  static auto* const single = new Memory;
  return *single;
}

std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

bool is_device_memory(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto from = reinterpret_cast<std::uintptr_t>(memory().shown);
  return at >= from && at < from + memory_size;
}

// Takes the first gap that is wide enough, and leaves a gap after the block.
void* allocate(std::size_t bytes, int device) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  std::size_t at = alignment;
  for (const auto& [offset, block] : all.blocks) {
    if (offset >= at + rounded(bytes) + alignment) {
      break;
    }
    at = offset + rounded(block.bytes) + alignment;
  }
  require(at + rounded(bytes) < memory_size, "the stand-in's GPU has no memory left");
  all.blocks[at] = {bytes, device};
  return all.shown + at;
}

void release(void* address) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto found = is_device_memory(address) ? all.blocks.find(offset_of(address)) : all.blocks.end();
  require(found != all.blocks.end(), "cudaFree of what cudaMalloc has not given, or of the same twice");
  ::fallocate(all.descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(found->first),
              static_cast<off_t>(found->second.bytes));
  all.blocks.erase(found);
}

int device_of(const void* address, std::size_t bytes) {
  if (!is_device_memory(address)) {
    return -1;
  }
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const std::size_t at = offset_of(address);
  auto next = all.blocks.upper_bound(at);
  if (next == all.blocks.begin()) {
    return -1;
  }
  --next;
  return at + bytes <= next->first + next->second.bytes ? next->second.device : -1;
}

std::byte* bytes_of(void* address) { return memory().inner + offset_of(address); }
const std::byte* bytes_of(const void* address) { return memory().inner + offset_of(address); }

int memory_descriptor() { return memory().descriptor; }
std::size_t offset_of(const void* address) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory().shown);
}

const std::byte* open_memory(int process, int descriptor) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return nullptr;
  }
  void* place = ::mmap(nullptr, memory_size, PROT_READ, MAP_SHARED | MAP_NORESERVE, file, 0);
  ::close(file);
  return place == MAP_FAILED ? nullptr : static_cast<const std::byte*>(place);
}

void* allocate_pinned(std::size_t bytes) {
  Memory& all = memory();
  auto* const place = static_cast<std::byte*>(std::malloc(bytes));
  const std::lock_guard lock(all.mutex);
  all.pinned[place] = bytes;
  return place;
}

void release_pinned(void* address) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  require(all.pinned.erase(static_cast<std::byte*>(address)) == 1,
          "cudaFreeHost of what cudaMallocHost has not given, or of the same twice");
  std::free(address);
}

bool is_pinned(const void* address, std::size_t bytes) {
  Memory& all = memory();
  const std::lock_guard lock(all.mutex);
  const auto* const at = static_cast<const std::byte*>(address);
  const auto next = all.pinned.upper_bound(at);
  if (next == all.pinned.begin()) {
    return false;
  }
  const auto& [from, size] = *std::prev(next);
  return at + bytes <= from + size;
}

}  // namespace rollcall::stand_in
