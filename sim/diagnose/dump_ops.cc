#include "sim/diagnose/dump_ops.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace rollcall::check {

namespace {

// Records farther back than this belong to another batch.
constexpr std::size_t batch_span_max = 4096;

// What must agree between the ranks of one call.
enum class Comparison : std::uint8_t {
  everything,
  common,  // what all members pass: only the root has the lists
  dtypes,  // sizes may differ from rank to rank
};

Comparison comparison_of(const std::string& op) {
  if (op.find("all_to_all") != std::string::npos || op.find("alltoall") != std::string::npos) {
    return Comparison::dtypes;
  }
  return op == "gather" || op == "scatter" ? Comparison::common : Comparison::everything;
}

// The shapes and dtypes, of inputs and outputs, that have to be equal on all ranks.
struct ComparedParts {
  std::vector<std::vector<std::int64_t>> inputs{};
  std::vector<std::vector<std::int64_t>> outputs{};
  std::vector<std::string> input_dtypes{};
  std::vector<std::string> output_dtypes{};

  friend auto operator<=>(const ComparedParts&, const ComparedParts&) = default;
};

ComparedParts compared_parts(const DumpCall& call) {
  switch (comparison_of(call.op)) {
    case Comparison::everything:
      break;
    case Comparison::common:
      return {call.common_shapes(), {}, call.common_dtypes(), {}};
    case Comparison::dtypes:
      return {{}, {}, call.input_dtypes, call.output_dtypes};
  }
  return {call.inputs, call.outputs, call.input_dtypes, call.output_dtypes};
}

bool in_time(const DumpRecord& record) {
  const bool has_times = record.completed_ns != 0 && record.created_ns != 0 && record.timeout_ms != 0;
  return !has_times || record.completed_ns - record.created_ns < std::int64_t{record.timeout_ms} * 1'000'000;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccd;
}

class Builder {
 public:
  Builder(const JobDump& job, const RankDump& dump, const std::vector<std::uint64_t>& tokens)
      : job_(job), dump_(dump), tokens_(tokens) {
    result_.dump = &dump;
    result_.ops.reserve(dump.records.size());
    result_.parts.reserve(dump.records.size());
  }

  RankOps build() {
    find_batches();
    drop_finished_batches();
    for (std::uint32_t i = 0; i < dump_.records.size(); ++i) {
      const DumpRecord& record = dump_.records[i];
      result_.has_start_events |=
          record.started_ns != 0 || record.state == DumpRecord::State::started || record.duration_ms >= 0;
      if (!is_part_[i]) {
        add(i);
      }
    }
    doubt_last();
    for (std::size_t i = 0; i < result_.ops.size(); ++i) {
      DumpOp& op = result_.ops[i];
      const bool is_certain = dump_.records[op.record].state == DumpRecord::State::completed;
      op.proven = op.finished && (is_certain || i + 1 < result_.ops.size());
    }
    return std::move(result_);
  }

 private:
  // While the host is in NCCL's launch of a call, the event behind the call has not been recorded yet, and CUDA says of
  // such an event that it has passed. A group's collectives end in their order, so the last one is not over if one
  // before it is not. (ProcessGroupNCCL.cpp, collective; FlightRecorderDetail.hpp, update_state)
  void doubt_last() {
    if (result_.ops.empty() || result_.ops.back().kind != DumpOp::Kind::collective ||
        dump_.records[result_.ops.back().record].retired) {
      return;
    }
    DumpOp& last = result_.ops.back();
    last.finished = last.finished && std::ranges::none_of(result_.ops, [&last](const DumpOp& op) {
                      return op.group == last.group && op.kind == DumpOp::Kind::collective && !op.finished &&
                             op.position < last.position;
                    });
  }

  static bool same_batch(const DumpRecord& a, const DumpRecord& b) {
    return a.group == b.group && a.collective_seq == b.collective_seq && a.p2p_seq == b.p2p_seq &&
           a.is_p2p == b.is_p2p;
  }

  // Marks the records that belong to a later marker.
  void find_batches() {
    is_part_.assign(dump_.records.size(), false);
    for (std::size_t i = 0; i < dump_.records.size(); ++i) {
      if (!job_.calls[dump_.records[i].call].is_marker()) {
        continue;
      }
      const std::size_t floor = i > batch_span_max ? i - batch_span_max : 0;
      for (std::size_t k = i; k-- > floor;) {
        const DumpRecord& other = dump_.records[k];
        if (other.group != dump_.records[i].group) {
          continue;  // another thread's call
        }
        if (!same_batch(other, dump_.records[i]) || job_.calls[other.call].is_marker()) {
          break;
        }
        is_part_[k] = true;
      }
    }
  }

  // Drops members whose marker is missing, though it would come right after them: the batch has finished, and the
  // dump holds only unfinished calls.
  void drop_finished_batches() {
    if (dump_.without_gaps) {
      return;
    }
    for (std::size_t i = 0; i < dump_.records.size();) {
      std::size_t end = i + 1;
      while (end < dump_.records.size() && !dump_.records[end - 1].gap_after && is_loose(end) &&
             same_batch(dump_.records[end], dump_.records[i])) {
        ++end;
      }
      // Single messages count from 1; members of a batch shared its number, or before torch 2.5 had none.
      const bool lacks_marker =
          end - i > 1 || dump_.records[end - 1].gap_after || dump_.records[i].p2p_seq == 0;
      if (is_loose(i) && lacks_marker) {
        std::fill(is_part_.begin() + static_cast<std::ptrdiff_t>(i),
                  is_part_.begin() + static_cast<std::ptrdiff_t>(end), true);
      }
      i = end;
    }
  }

  // True for a message that belongs to no marker.
  bool is_loose(std::size_t index) const {
    const DumpRecord& record = dump_.records[index];
    return !is_part_[index] && record.is_p2p && record.state == DumpRecord::State::scheduled &&
           job_.calls[record.call].is_message();
  }

  void add(std::uint32_t index) {
    const DumpRecord& record = dump_.records[index];
    const DumpCall& call = job_.calls[record.call];
    DumpOp op;
    op.group = record.group;
    op.record = index;
    op.finished = record.is_over() && in_time(record);
    op.started = record.state != DumpRecord::State::scheduled || record.started_ns != 0;
    op.first_part = static_cast<std::uint32_t>(result_.parts.size());
    if (call.is_marker()) {
      add_parts(index);
    }
    const bool is_alone = result_.parts.size() == op.first_part;
    if (is_alone) {
      result_.parts.push_back(index);
    }
    op.part_count = static_cast<std::uint32_t>(result_.parts.size()) - op.first_part;
    const bool is_batch = call.is_marker() && record.is_p2p;
    op.kind = is_batch                             ? DumpOp::Kind::batch
              : call.is_message() && record.is_p2p ? DumpOp::Kind::message
                                                   : DumpOp::Kind::collective;
    op.token = tokens_[record.call];
    if (!is_alone) {
      for (const std::uint32_t part : result_.parts_of(op)) {
        op.token = mix(op.token, tokens_[dump_.records[part].call]);
      }
    }
    op.position = record.collective_seq;
    result_.ops.push_back(op);
  }

  void add_parts(std::uint32_t marker) {
    std::size_t first = marker;
    for (std::size_t k = marker; k-- > 0 && marker - k <= batch_span_max;) {
      const DumpRecord& other = dump_.records[k];
      if (other.group != dump_.records[marker].group) {
        continue;
      }
      if (!is_part_[k] || !same_batch(other, dump_.records[marker])) {
        break;
      }
      first = k;
    }
    for (std::size_t k = first; k < marker; ++k) {
      if (is_part_[k] && same_batch(dump_.records[k], dump_.records[marker])) {
        result_.parts.push_back(static_cast<std::uint32_t>(k));
      }
    }
  }

  const JobDump& job_;
  const RankDump& dump_;
  const std::vector<std::uint64_t>& tokens_;
  RankOps result_;
  std::vector<bool> is_part_;
};

}  // namespace

bool has_root(const std::string& op) {
  constexpr std::array<std::string_view, 9> rooted = {
      "broadcast", "_broadcast_oop",        "reduce",        "_reduce_oop",        "gather",
      "scatter",   "broadcast_object_list", "gather_object", "scatter_object_list"};
  return std::ranges::find(rooted, op) != rooted.end();
}

bool shapes_may_differ(const std::string& op) { return comparison_of(op) == Comparison::dtypes; }

bool same_shapes(const DumpCall& a, const DumpCall& b) {
  const ComparedParts one = compared_parts(a);
  const ComparedParts other = compared_parts(b);
  return one.inputs == other.inputs && one.outputs == other.outputs;
}

std::vector<std::uint64_t> agreement_tokens(const JobDump& job) {
  using Key = std::tuple<std::string, Rank, Rank, ComparedParts>;
  std::map<Key, std::uint64_t> numbers;
  std::vector<std::uint64_t> tokens;
  tokens.reserve(job.calls.size());
  for (const DumpCall& call : job.calls) {
    Key key{call.op, call.source, call.destination, compared_parts(call)};
    tokens.push_back(numbers.emplace(std::move(key), numbers.size() + 1).first->second);
  }
  return tokens;
}

RankOps operations_of(const JobDump& job, const RankDump& dump, const std::vector<std::uint64_t>& tokens) {
  return Builder(job, dump, tokens).build();
}

}  // namespace rollcall::check
