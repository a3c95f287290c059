#include "real/rank/record.h"

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
          observation.surplus, observation.contributions, observation.handle, observation.seq,
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

// FNV-1a: short, and the same on every machine.
class Digest {
 public:
  void add(const Storage& storage) {
    const std::size_t size = size_of(storage.dtype);
    for (std::int64_t i = 0; i < storage.numel; ++i) {
      const Bits bits = storage.at(i);
      for (std::size_t byte = 0; byte < size; ++byte) {
        hash_ = (hash_ ^ ((bits >> (8 * byte)) & 0xff)) * 0x100000001b3ULL;
      }
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
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
