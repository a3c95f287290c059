#include "tests/stand_in/rendezvous.h"

#include <ctime>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/stand_in/rules.h"

namespace rollcall::stand_in {
namespace {

// How long a waiter sleeps if it is not woken: only its own process knows whether it has been given up.
constexpr timespec nap = {0, 20'000'000};

std::shared_ptr<Shared> map(int descriptor) {
  void* place = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  require(place != MAP_FAILED, "no addresses for a communicator");
  return {static_cast<Shared*>(place), [](Shared* shared) { ::munmap(shared, sizeof(Shared)); }};
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* limit) {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

}  // namespace

// The descriptor stays open as long as the process lives, as NCCL keeps the socket behind a unique id.
Address make_rendezvous() {
  const int descriptor = ::memfd_create("rollcall-stand-in-communicator", MFD_CLOEXEC);
  require(descriptor >= 0 && ::ftruncate(descriptor, sizeof(Shared)) == 0, "no memory for a communicator");
  new (map(descriptor).get()) Shared;
  return {::getpid(), descriptor};
}

std::shared_ptr<Shared> open_rendezvous(const Address& address) {
  const std::string path =
      "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.number);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    return nullptr;
  }
  std::shared_ptr<Shared> shared = map(descriptor);
  ::close(descriptor);
  return shared;
}

void announce(Shared& shared) {
  shared.changes.fetch_add(1);
  futex(shared.changes, FUTEX_WAKE, INT32_MAX, nullptr);
}

bool wait_for(Shared& shared, const std::function<bool()>& condition, const std::function<bool()>& given_up) {
  for (;;) {
    const std::uint32_t before = shared.changes.load();
    if (condition()) {
      return true;
    }
    if (given_up()) {
      return false;
    }
    futex(shared.changes, FUTEX_WAIT, before, &nap);
  }
}

}  // namespace rollcall::stand_in
