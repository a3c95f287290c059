#include "tests/fuzz/made_up_report.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace rollcall::fuzz {
namespace {

constexpr Time longest = std::int64_t{1} << 62;  // the longest run: half of the largest time

// Takes values from the front of bytes.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}

  // Returns a number from `least` to `most`.
  std::int64_t number(std::int64_t least, std::int64_t most) {
    const auto ways = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least) + 1;
    const std::uint64_t drawn = ways <= 256 ? take<std::uint8_t>() : take<std::uint64_t>();
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(least) + (ways == 0 ? drawn : drawn % ways));
  }
  std::int64_t any() { return take<std::int64_t>(); }
  Time time() { return number(0, longest); }
  bool flag() { return number(0, 1) == 1; }
  double real() { return take<double>(); }
  std::string text() {
    const auto wanted = static_cast<std::size_t>(number(0, 40));
    const std::size_t size = std::min(wanted, left_.size());
    std::string text(left_.substr(0, size));
    left_.remove_prefix(size);
    return text;
  }
  template <typename Make>
  auto list(std::int64_t most, const Make& make) {
    std::vector<decltype(make())> things;
    for (std::int64_t count = number(0, most); count > 0; --count) {
      things.push_back(make());
    }
    return things;
  }

 private:
  template <typename T>
  T take() {
    T value{};
    const std::size_t size = std::min(sizeof value, left_.size());
    std::memcpy(&value, left_.data(), size);
    left_.remove_prefix(size);
    return value;
  }

  std::string_view left_;
};

class Maker {
 public:
  explicit Maker(std::string_view bytes) : bytes_(bytes) {}

  Report report() {
    Report report;
    size_ = static_cast<Rank>(bytes_.number(1, 8));
    report.scenario = bytes_.text();
    report.seed = static_cast<std::uint64_t>(bytes_.any());
    report.replay = bytes_.text();
    report.world_size = size_;
    report.backend = bytes_.flag() ? "nccl" : "gloo";
    report.verdict = verdict();
    report.ranks = classes();
    report.output = bytes_.list(4, [this] { return line(); });
    std::ranges::stable_sort(report.output, {}, &OutputLine::rank);
    report.values = bytes_.list(3, [this] { return value(); });
    report.simulated_time = bytes_.time();
    report.measured = bytes_.flag();
    report.ops = bytes_.number(0, longest);
    report.schedules = bytes_.number(0, longest);
    report.exhaustive = bytes_.flag();
    if (bytes_.flag()) {
      report.search = search();
    }
    if (bytes_.flag()) {
      report.expected = bytes_.flag();
    }
    report.unmet = bytes_.list(3, [this] { return bytes_.text(); });
    report.joins = bytes_.list(2, [this] { return join(); });
    report.groups = bytes_.list(3, [this] { return ReportGroup{bytes_.text(), ranks()}; });
    fill(report.timeline);
    return report;
  }

 private:
  Rank rank() { return static_cast<Rank>(bytes_.number(0, size_ - 1)); }
  Rank rank_or_none() { return static_cast<Rank>(bytes_.number(-1, size_ - 1)); }

  RankSet ranks() {
    const std::int64_t members = bytes_.number(0, 255);
    RankSet set;
    for (Rank rank = 0; rank < size_; ++rank) {
      if ((members >> rank & 1) == 1) {
        set.insert(rank);
      }
    }
    return set;
  }
  RankSet some_ranks() {
    RankSet set = ranks();
    return set.empty() ? RankSet{rank()} : set;
  }

  Call call() {
    Call call;
    call.op = bytes_.text();
    call.group = bytes_.text();
    call.seq = bytes_.number(0, longest);
    call.numel = bytes_.number(0, longest);
    call.dtype = bytes_.text();
    call.reduce_op = bytes_.text();
    call.root = rank_or_none();
    call.peer = rank_or_none();
    call.tag = static_cast<std::int32_t>(bytes_.any());
    call.ranks = bytes_.text();
    call.key = bytes_.text();
    call.device = bytes_.text();
    call.label = bytes_.text();
    call.site = bytes_.text();
    return call;
  }
  Place place() { return {call(), ranks(), ranks()}; }
  Variant variant() { return {some_ranks(), call()}; }
  std::vector<Variant> variants() {
    return bytes_.list(3, [this] { return variant(); });
  }
  TensorPlace tensor() {
    return {some_ranks(), bytes_.text(), bytes_.text(), bytes_.text(), bytes_.text(), bytes_.text()};
  }

  FindingKind kind() {
    const auto last = static_cast<std::int64_t>(finding_rows().size()) - 1;
    return finding_rows()[static_cast<std::size_t>(bytes_.number(0, last))].kind;
  }

  Finding finding() {
    Finding finding;
    finding.kind = kind();
    finding.culprits = ranks();
    finding.tie = bytes_.flag();
    if (bytes_.flag()) {
      finding.suspects = finding.culprits.to_vector();
      finding.suspicion = bytes_.text();
    }
    if (bytes_.flag()) {
      finding.at = place();
    }
    if (bytes_.flag()) {
      finding.first_divergence = Divergence{bytes_.text(), bytes_.number(0, longest), variants()};
    }
    finding.headline = bytes_.text();
    finding.cause = bytes_.text();
    finding.advice = bytes_.text();
    if (bytes_.flag()) {
      finding.repair =
          Repair{bytes_.list(3,
                             [this] {
                               return RepairStep{ranks(), bytes_.text(), bytes_.number(1, longest)};
                             }),
                 bytes_.number(0, longest)};
    }
    finding.on_backend = bytes_.text();
    finding.chain = bytes_.list(3, [this] { return bytes_.text(); });
    return finding;
  }

  Verdict verdict() {
    switch (bytes_.number(0, 8)) {
      case 1:
        return Deadlock{finding(), bytes_.list(3, [this] { return place(); })};
      case 2:
        return Mismatch{finding(), variants()};
      case 3:
        return DeviceMismatch{finding(), variants()};
      case 4:
        return WrongResult{finding(), variants(), bytes_.list(2, [this] { return tensor(); })};
      case 5:
        return Race{finding(), variants(), bytes_.list(2, [this] { return tensor(); }), outcomes()};
      case 6:
        return ResourceLeak{finding(), variants()};
      case 7:
        return RankFailed{finding(), bytes_.text()};
      case 8:
        return LimitReached{finding(), bytes_.any()};
      default:
        return Completed{};
    }
  }

  // Every rank is in one of the classes.
  std::vector<RankClass> classes() {
    std::vector<RankClass> classes;
    for (Rank first = 0; first < size_;) {
      RankClass each;
      const auto last = static_cast<Rank>(bytes_.number(first, size_ - 1));
      each.ranks = RankSet::range(first, last);
      each.state = static_cast<RankClass::State>(bytes_.number(0, 4));
      if (each.state == RankClass::State::waiting) {
        each.call = call();
        each.waits_for = ranks();
      }
      if (bytes_.flag()) {
        each.last_completed = call();
      }
      each.inputs = bytes_.number(-1, longest);
      each.exception = bytes_.text();
      classes.push_back(std::move(each));
      first = last + 1;
    }
    return classes;
  }

  OutputLine line() { return {rank(), bytes_.time(), bytes_.flag(), bytes_.text()}; }
  TensorValue value() {
    TensorValue value{rank(), bytes_.text(), bytes_.number(1, longest), {}};
    value.elements = bytes_.list(4, [this] { return bytes_.real(); });
    value.elements.resize(std::max<std::size_t>(value.elements.size(), 1));
    return value;
  }
  std::vector<Outcome> outcomes() {
    return bytes_.list(3, [this] { return Outcome{bytes_.text(), kind(), bytes_.number(0, longest)}; });
  }
  SearchResult search() {
    SearchResult result;
    result.outcomes = outcomes();
    result.failures = bytes_.list(2, [this] {
      return FoundFailure{bytes_.text(), kind(), bytes_.text(), ranks(), bytes_.number(0, longest),
                          bytes_.text()};
    });
    result.distinct = bytes_.number(0, longest);
    result.cut = bytes_.number(0, longest);
    result.space = bytes_.real();
    result.bounds = bytes_.list(2, [this] { return bytes_.text(); });
    result.interrupted = bytes_.flag();
    return result;
  }

  JoinCost join() {
    std::vector<JoinEpisode> episodes;
    for (Rank rank = 0; rank < size_; ++rank) {
      const Time joined = bytes_.time();
      constexpr std::int64_t most = 1'000'000;
      episodes.push_back(
          {rank, bytes_.number(0, most), bytes_.number(0, most), joined, bytes_.number(joined, longest)});
    }
    return join_cost(bytes_.text(), episodes, longest);
  }

  void fill(Timeline& timeline) {
    for (std::int64_t count = bytes_.number(0, 24); count > 0; --count) {
      Span span;
      span.start = bytes_.time();
      span.end = bytes_.flag() ? Span::open : bytes_.number(span.start, longest);
      span.seq = bytes_.number(-1, longest);
      span.numel = bytes_.number(0, longest);
      span.rank = rank();
      span.peer = rank_or_none();
      span.kind = static_cast<Span::Kind>(bytes_.number(0, 2));
      span.async_op = bytes_.flag();
      span.shadow = bytes_.flag();
      span.dtype = static_cast<Dtype>(bytes_.number(0, dtype_count - 1));
      span.name = timeline.intern(bytes_.text());
      span.group = timeline.intern(bytes_.text());
      span.label = timeline.intern(bytes_.text());
      span.site = timeline.intern(bytes_.text());
      span.arguments = timeline.intern(bytes_.text());
      timeline.add(span);
    }
    std::vector<StepMark> steps = bytes_.list(4, [this] {
      return StepMark{bytes_.time(), rank(), bytes_.number(0, longest)};
    });
    std::ranges::stable_sort(steps, {}, &StepMark::time);
    std::ranges::for_each(steps, [&timeline](const StepMark& step) { timeline.add_step(step); });
  }

  Bytes bytes_;
  Rank size_ = 1;
};

}  // namespace

Report made_up_report(std::string_view bytes) { return Maker(bytes).report(); }

}  // namespace rollcall::fuzz
