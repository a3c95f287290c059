#include "sim/explore/schedule.h"

#include <limits>

#include <fmt/core.h>

namespace rollcall::sim {
namespace {

constexpr std::uint8_t version = 1;
constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz234567";
constexpr unsigned bits_per_letter = 5;

using Bytes = std::vector<std::uint8_t>;

void put(Bytes& bytes, std::uint64_t number) {
  while (number >= 0x80) {
    bytes.push_back(static_cast<std::uint8_t>(number | 0x80));
    number >>= 7;
  }
  bytes.push_back(static_cast<std::uint8_t>(number));
}

// FNV-1a, folded to a byte: a mistyped or lost letter is noticed 255 times out of 256.
std::uint8_t check_sum(const Bytes& bytes) {
  std::uint32_t state = 0x811c9dc5;
  for (const std::uint8_t byte : bytes) {
    state = (state ^ byte) * 0x01000193;
  }
  return static_cast<std::uint8_t>(state ^ (state >> 8) ^ (state >> 16) ^ (state >> 24));
}

std::string in_letters(const Bytes& bytes) {
  std::string text;
  std::uint32_t pending = 0;
  unsigned bits = 0;
  for (const std::uint8_t byte : bytes) {
    pending = (pending << 8) | byte;
    for (bits += 8; bits >= bits_per_letter; bits -= bits_per_letter) {
      text += alphabet[(pending >> (bits - bits_per_letter)) & 31];
    }
  }
  if (bits > 0) {
    text += alphabet[(pending << (bits_per_letter - bits)) & 31];
  }
  return text;
}

Bytes from_letters(std::string_view text) {
  Bytes bytes;
  std::uint32_t pending = 0;
  unsigned bits = 0;
  for (const char letter : text) {
    const std::size_t value = alphabet.find(letter);
    if (value == std::string_view::npos) {
      throw BadSchedule(fmt::format("not a schedule: it uses only a-z and 2-7, and this has a '{}'", letter));
    }
    pending = (pending << bits_per_letter) | static_cast<std::uint32_t>(value);
    bits += bits_per_letter;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<std::uint8_t>(pending >> bits));
    }
  }
  return bytes;
}

[[noreturn]] void refuse_damaged() {
  throw BadSchedule("the schedule is damaged: copy all of it from the report's replay line");
}

class Numbers {
 public:
  explicit Numbers(const Bytes& bytes) : bytes_(bytes) {}

  bool is_at_end() const { return at_ == bytes_.size(); }

  std::uint64_t take() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      if (is_at_end()) {
        refuse_damaged();
      }
      const std::uint8_t byte = bytes_[at_++];
      number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        return number;
      }
    }
    refuse_damaged();
  }

 private:
  const Bytes& bytes_;
  std::size_t at_ = 0;
};

constexpr std::uint64_t order_flag = 1;
constexpr std::uint64_t delay_flag = 2;
constexpr std::uint64_t receivers_flag = 4;
constexpr std::uint64_t kinds = 4;

// The number of runs of consecutive ranks, then for each run the distance from the previous one and how many ranks
// follow its first.
void put_receivers(Bytes& bytes, const std::vector<Rank>& receivers) {
  std::vector<std::pair<Rank, Rank>> runs;  // first and last
  for (const Rank rank : receivers) {
    if (!runs.empty() && runs.back().second + 1 == rank) {
      runs.back().second = rank;
    } else {
      runs.emplace_back(rank, rank);
    }
  }
  put(bytes, runs.size());
  Rank next = 0;
  for (const auto& [first, last] : runs) {
    put(bytes, static_cast<std::uint64_t>(first - next));
    put(bytes, static_cast<std::uint64_t>(last - first));
    next = last + 1;
  }
}

std::vector<Rank> take_receivers(Numbers& numbers) {
  constexpr std::uint64_t most = std::uint64_t{1} << 24;  // ranks
  std::vector<Rank> receivers;
  std::uint64_t next = 0;
  for (std::uint64_t runs = numbers.take(); runs > 0; --runs) {
    const std::uint64_t distance = numbers.take();
    const std::uint64_t more = numbers.take();
    if (distance > most || more > most || next + distance + more > most) {
      refuse_damaged();
    }
    for (std::uint64_t rank = next + distance; rank <= next + distance + more; ++rank) {
      receivers.push_back(static_cast<Rank>(rank));
    }
    next += distance + more + 1;
  }
  return receivers;
}

}  // namespace

std::string to_text(const Schedule& schedule) {
  Bytes bytes = {version};
  put(bytes, (schedule.orders_calls ? order_flag : 0) | (schedule.draws_delays ? delay_flag : 0) |
                 (schedule.receivers.empty() ? 0 : receivers_flag));
  if (!schedule.receivers.empty()) {
    put_receivers(bytes, schedule.receivers);
  }
  put(bytes, schedule.decisions);
  std::size_t next = 0;
  for (const Deviation& each : schedule.deviations) {
    put(bytes, each.index - next);
    put(bytes, each.ways * kinds + static_cast<std::uint64_t>(each.kind));
    put(bytes, each.way);
    put(bytes, static_cast<std::uint64_t>(each.rank));
    next = each.index + 1;
  }
  bytes.push_back(check_sum(bytes));
  return in_letters(bytes);
}

Schedule parse_schedule(std::string_view text) {
  Bytes bytes = from_letters(text);
  if (bytes.empty()) {
    refuse_damaged();
  }
  if (bytes.front() != version) {
    throw BadSchedule(fmt::format("not a schedule that this program reads: version {} instead of {}",
                                  bytes.front(), version));
  }
  const bool is_whole = in_letters(bytes) == text;
  const std::uint8_t sum = bytes.back();
  bytes.pop_back();
  if (!is_whole || check_sum(bytes) != sum) {
    refuse_damaged();
  }
  bytes.erase(bytes.begin());
  Numbers numbers(bytes);
  Schedule schedule;
  const std::uint64_t flags = numbers.take();
  schedule.orders_calls = (flags & order_flag) != 0;
  schedule.draws_delays = (flags & delay_flag) != 0;
  if ((flags & receivers_flag) != 0) {
    schedule.receivers = take_receivers(numbers);
  }
  schedule.decisions = numbers.take();
  std::size_t next = 0;
  while (!numbers.is_at_end()) {
    Deviation each;
    each.index = next + numbers.take();
    const std::uint64_t ways = numbers.take();
    each.kind = static_cast<Decision::Kind>(ways % kinds);
    each.ways = ways / kinds;
    each.way = numbers.take();
    const std::uint64_t rank = numbers.take();
    if (rank > static_cast<std::uint64_t>(std::numeric_limits<Rank>::max()) || each.way >= each.ways) {
      refuse_damaged();
    }
    each.rank = static_cast<Rank>(rank);
    next = each.index + 1;
    schedule.deviations.push_back(each);
  }
  return schedule;
}

}  // namespace rollcall::sim
