#include "traces/watch/live_ring.h"

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rollcall::watch {

namespace {

// How many of the latest calls look() inspects. Asynchronous calls may be pending behind this many later ones;
// inspecting more would not tell more.
constexpr std::uint64_t looked_at_max = 512;

}  // namespace

std::optional<LiveRing> LiveRing::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) {
    return std::nullopt;
  }
  struct stat status = {};
  void* memory = MAP_FAILED;
  if (::fstat(file, &status) == 0 && status.st_size >= static_cast<off_t>(traces::ring_page)) {
    memory = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED,
                    file, 0);
  }
  ::close(file);
  if (memory == MAP_FAILED) {
    return std::nullopt;
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  try {
    const traces::RingHeader header = traces::ring_header({static_cast<const char*>(memory), size});
    return LiveRing(static_cast<char*>(memory), size, status.st_ino, header);
  } catch (...) {
    ::munmap(memory, size);
    throw;
  }
}

LiveRing::LiveRing(LiveRing&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      size_(other.size_),
      identity_(other.identity_),
      header_(other.header_) {}

LiveRing::~LiveRing() {
  if (memory_ != nullptr) {
    ::munmap(memory_, size_);
  }
}

std::uint64_t LiveRing::word(std::size_t index) const {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(memory_) + index, __ATOMIC_ACQUIRE);
}

void LiveRing::set_word(std::size_t index, std::uint64_t value) {
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(memory_) + index, value, __ATOMIC_RELEASE);
}

RingLook LiveRing::look() const {
  namespace words = traces::ring_words;
  RingLook look;
  look.issued = word(words::issued);
  look.finished = word(words::finished);
  look.heartbeat_ns = static_cast<std::int64_t>(word(words::heartbeat));
  look.has_ended = word(words::end) != 0;
  look.place = word(words::place);
  look.steps = word(words::steps);
  const std::uint64_t count = std::min({look.issued, header_.capacity, looked_at_max});
  for (std::uint64_t i = 0; i < count; ++i) {
    const traces::RingRecord record = traces::ring_record(bytes(), header_, look.issued - i);
    if (record.number == look.issued - i && record.finished_ns == 0) {
      look.waits = true;
      look.waits_in = record.is_about_groups() ? op_of(record.call) : look.waits_in;
    }
  }
  return look;
}

std::string LiveRing::op_of(std::uint32_t call) const {
  const std::uint64_t used =
      std::min<std::uint64_t>(word(traces::ring_words::table_used), size_ - header_.table_begin);
  const std::string_view table = bytes().substr(header_.table_begin, used);
  const std::string begin = fmt::format("{{\"call\":{},\"op\":\"", call);
  const std::size_t place = table.find(begin);
  if (place == std::string_view::npos) {
    return "a call";
  }
  const std::string_view rest = table.substr(place + begin.size());
  return std::string(rest.substr(0, rest.find('"')));
}

void LiveRing::ask(std::uint64_t question) { set_word(traces::ring_words::asked, question); }

std::uint64_t LiveRing::answered() const { return word(traces::ring_words::answered); }

void LiveRing::note_standstill(std::uint64_t since_ns) {
  set_word(traces::ring_words::stands_still, since_ns);
}

}  // namespace rollcall::watch
