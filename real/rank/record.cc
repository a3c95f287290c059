#include "real/rank/record.h"

#include <array>
#include <concepts>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "real/rank/encode_store.h"

namespace rollcall {

// Except for the op, which is logged separately. The file's name is sent as `Record::text`.
template <typename Visitor, typename AnyObservation>
requires std::same_as<std::remove_const_t<AnyObservation>, Observation>
void visit(Visitor& visitor, AnyObservation& observation) {
  visitor(observation.kind, observation.access, observation.tensor, observation.got, observation.want,
          observation.surplus, observation.contributions, observation.handle, observation.by, observation.seq,
          observation.root, observation.site.line, observation.site.column);
}

template <typename Visitor, typename AnySplits>
requires std::same_as<std::remove_const_t<AnySplits>, SplitSizes>
void visit(Visitor& visitor, AnySplits& splits) { visitor(splits.output, splits.input); }

}  // namespace rollcall

namespace rollcall::real {

template <typename Visitor, typename AnyRecord>
requires std::same_as<std::remove_const_t<AnyRecord>, Record>
void visit(Visitor& visitor, AnyRecord& record) {
  visitor(record.kind, record.at, record.call, record.inputs, record.value, record.digest, record.source,
          record.lost_peer, record.ran_from, record.ran_to, record.type, record.text, record.observation);
  if (record.kind != Record::Kind::issue && record.kind != Record::Kind::observe) {
    return;
  }
  visitor(record.op.op, record.op.names, record.op.pairings, record.op.file, record.op.input,
          record.op.output, record.op.inputs, record.op.outputs, record.op.splits, record.op.ranks,
          record.op.group_name, record.op.store, record.op.limit);
}

namespace {

using Length = std::uint32_t;

constexpr std::size_t record_bytes_max = std::size_t{64} << 20;

// FNV-1a: short, and the same on every machine. A byte takes the hash h to (h ^ byte) * prime.
class Digest {
 public:
  void add(const Storage& storage) {
    const std::size_t size = size_of(storage.dtype);
    if (storage.form == Storage::Form::uniform && storage.numel > repeats_min) {
      add_repeated(storage.value, size, storage.numel);
      return;
    }
    for (std::int64_t i = 0; i < storage.numel; ++i) {
      const Bits bits = storage.at(i);
      for (std::size_t byte = 0; byte < size; ++byte) {
        hash_ = (hash_ ^ byte_of(bits, byte)) * prime;
      }
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  static constexpr std::uint64_t prime = 0x100000001b3ULL;
  static constexpr std::int64_t repeats_min = 10'000;  // fewer are added faster one by one

  // What equal elements do to a hash whose lowest byte is known: `^` changes only that byte, so it adds a number that
  // is known, too. Such steps can be joined: h * factor + term, and the lowest byte is `low` then.
  struct Steps {
    std::uint64_t factor = 1;
    std::uint64_t term = 0;
    std::uint8_t low = 0;

    void add(std::uint64_t byte) {
      const std::uint64_t added = (low ^ byte) - low;
      factor *= prime;
      term = (term + added) * prime;
      low = static_cast<std::uint8_t>((low ^ byte) * prime);
    }
    Steps followed_by(const Steps& next) const {
      return {factor * next.factor, term * next.factor + next.term, next.low};
    }
  };

  static std::uint64_t byte_of(Bits bits, std::size_t byte) { return (bits >> (8 * byte)) & 0xff; }

  // Doubles the number of elements that the steps are for.
  void add_repeated(Bits bits, std::size_t size, std::int64_t count) {
    std::array<Steps, 256> by_low;
    for (std::size_t low = 0; low < by_low.size(); ++low) {
      by_low[low].low = static_cast<std::uint8_t>(low);
      for (std::size_t byte = 0; byte < size; ++byte) {
        by_low[low].add(byte_of(bits, byte));
      }
    }
    for (; count > 0; count /= 2) {
      if (count % 2 == 1) {
        const Steps& steps = by_low[hash_ & 0xff];
        hash_ = hash_ * steps.factor + steps.term;
      }
      const std::array<Steps, 256> half = by_low;
      for (std::size_t low = 0; low < by_low.size(); ++low) {
        by_low[low] = half[low].followed_by(half[half[low].low]);
      }
    }
  }

  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace

std::string encode(const Record& record) {
  Encoder encoder;
  encoder(Length{0});
  visit(encoder, record);
  const auto length = static_cast<Length>(encoder.bytes.size() - sizeof(Length));
  std::memcpy(encoder.bytes.data(), &length, sizeof length);
  return std::move(encoder.bytes);
}

std::optional<Record> Decoder::next() {
  Length length = 0;
  if (bytes_.size() - at_ < sizeof length) {
    return std::nullopt;
  }
  std::memcpy(&length, bytes_.data() + at_, sizeof length);
  if (length > record_bytes_max) {
    throw std::runtime_error("a record of a rank is longer than records are");
  }
  if (bytes_.size() - at_ < sizeof length + length) {
    return std::nullopt;
  }
  Reader reader(std::string_view(bytes_).substr(at_ + sizeof length, length));
  Record record;
  visit(reader, record);
  if (record.kind > Record::Kind::drop || (record.op.store && !is_sound(*record.op.store))) {
    throw std::runtime_error("a record of a rank is invalid");
  }
  at_ += sizeof length + length;
  if (at_ == bytes_.size()) {
    bytes_.clear();
    at_ = 0;
  }
  return record;
}

TensorList results_of(const Op& op) {
  const bool is_for_others = row_of(op.kind).root == Root::destination && op.rank != op.root;
  return is_for_others ? TensorList() : filled_tensors(op);
}

std::uint64_t digest_of(const TensorList& results) {
  Digest digest;
  for (const Tensor& tensor : results) {
    if (tensor.is_meta()) {
      return 0;
    }
    digest.add(*tensor.storage());
  }
  return results.empty() ? 0 : digest.value();
}

}  // namespace rollcall::real
