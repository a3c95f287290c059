#include "tests/blame/drawn_job.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tests/blame/layouts.h"

namespace rollcall::blame {
namespace {

// Which ranks deviate, and when.
struct Deviation {
  RankSet ranks;
  std::string condition;  // an expression
};

Json block(const std::string& condition, Json statements, Json otherwise = nullptr) {
  if (condition.empty()) {
    return statements;
  }
  Json branch = {{"if", condition}, {"do", std::move(statements)}};
  if (!otherwise.is_null()) {
    branch["else"] = std::move(otherwise);
  }
  return Json::array({std::move(branch)});
}

Json statements_of(const Piece& piece) {
  Json all = Json::array();
  for (const Json& each : piece.calls) {
    all.push_back(each);
  }
  return all;
}

template <typename Statements>
void append(Json& list, const Statements& statements) {
  for (const Json& each : statements) {
    list.push_back(each);
  }
}

class Author {
 public:
  explicit Author(std::uint64_t seed) : random_(seed) {}

  DrawnJob write(bool healthy) {
    layout_ = draw_layout(random_.one_of(layout_names()), random_);
    backend_ = random_.once_in(2) ? "nccl" : "gloo";
    DrawnJob job;
    job.layout = layout_.name;
    job.mistake = "none";
    // Not every mistake can be made in every place, so this tries other places and other mistakes.
    for (int tries = 0; !healthy && job.mistake == "none" && tries < 200; ++tries) {
      const std::string mistake = random_.one_of(mistakes());
      if (const auto deviation = deviate(mistake)) {
        job.mistake = mistake;
        job.culprits = deviation->ranks;
        job.is_recorded = is_recorded(mistake);
      }
    }
    job.scenario = text();
    return job;
  }

 private:
  const std::vector<Piece>& pieces(std::size_t section) const { return layout_.step[section].pieces; }
  const Piece& piece() const { return pieces(section_)[piece_]; }
  Json& argument(Json& call, const char* name) { return call.begin().value()[name]; }

  // Draws ranks that deviate in one step or in every step, and that have peers which do not deviate.
  std::optional<Deviation> draw_ranks(const Piece& piece) {
    std::vector<Rank> candidates;
    for (Rank rank = 0; rank < layout_.world_size; ++rank) {
      const bool has_company = piece.is_message() || layout_.members(piece.group, rank).size() > 1;
      if (piece.runs_on(rank) && has_company) {
        candidates.push_back(rank);
      }
    }
    if (candidates.empty()) {
      return std::nullopt;
    }
    Deviation deviation;
    if (random_.once_in(4) && candidates.size() >= 6) {
      const Rank modulus = static_cast<Rank>(3 + random_.below(2));
      const Rank rest = static_cast<Rank>(random_.below(static_cast<std::size_t>(modulus)));
      for (const Rank rank : candidates) {
        if (rank % modulus == rest) {
          deviation.ranks.insert(RankSet{rank});
        }
      }
      deviation.condition = fmt::format("rank % {} == {}", modulus, rest);
    } else {
      const Rank rank = random_.one_of(candidates);
      deviation.ranks = RankSet{rank};
      deviation.condition = fmt::format("rank == {}", rank);
    }
    if (deviation.ranks.empty() || !leaves_witnesses(piece, deviation.ranks)) {
      return std::nullopt;
    }
    // A rank that deviates in every step needs many peers, or it would be impossible to say which side is right.
    if (candidates.size() >= 4 && random_.once_in(4) && layout_.name != "parameter server") {
      return deviation;
    }
    step_ = static_cast<Rank>(1 + random_.below(static_cast<std::size_t>(layout_.steps) - 1));
    deviation.condition += fmt::format(" && step == {}", step_);
    return deviation;
  }

  // Recorders keep neither reduce ops nor roots, and Gloo's no messages.
  bool is_recorded(const std::string& mistake) const {
    return mistake != "wrong reduction" && mistake != "wrong root" &&
           (backend_ == "nccl" || !piece().is_message());
  }

  // If no member of a group makes a call, no rank misses it.
  bool leaves_witnesses(const Piece& piece, const RankSet& ranks) const {
    if (piece.is_message()) {
      return ranks.size() == 1;
    }
    const std::vector<Rank> all = ranks.to_vector();
    return std::ranges::all_of(all, [&](Rank rank) {
      const std::vector<Rank> members = layout_.members(piece.group, rank);
      const auto deviating =
          std::ranges::count_if(members, [&](Rank member) { return ranks.contains(member); });
      return 2 * deviating < static_cast<std::ptrdiff_t>(members.size()) ||
             (deviating == 1 && members.size() == 2);
    });
  }

  std::optional<Deviation> deviate(const std::string& mistake) {
    section_ = random_.below(layout_.step.size());
    if (pieces(section_).empty()) {
      return std::nullopt;
    }
    piece_ = random_.below(pieces(section_).size());
    std::optional<Deviation> deviation = draw_ranks(piece());
    if (!deviation) {
      return std::nullopt;
    }
    const bool every_step = deviation->condition.find("step") == std::string::npos;
    condition_ = deviation->condition;
    if (!piece().loop.empty() && !every_step) {
      condition_ += fmt::format(" && {} == {}", piece().loop, piece().loop == "w" ? random_.below(3) : 0);
    }
    if (!apply(mistake, every_step)) {
      return std::nullopt;
    }
    mistaken_ = true;
    if (piece().loop == "w") {
      deviation->ranks = RankSet{0};
    }
    return deviation;
  }

  bool apply(const std::string& mistake, bool every_step) {
    const Piece& right = piece();
    const Json all = statements_of(right);
    const std::string op = right.calls.front().begin().key();
    const bool is_plain = right.is_one_call() && right.calls.front().begin().value().is_object();
    Json wrong = all;
    Json& call = wrong[0];
    if (mistake == "skip") {
      instead_ = block(fmt::format("!({})", condition_), all);
    } else if (mistake == "extra") {
      if (!is_plain) {
        return false;
      }
      Json more = right.calls.front();
      if (random_.once_in(2) && !right.is_message()) {
        more = {{"all_reduce", {{"numel", 1}, {"group", right.group}, {"label", "logging"}}}};
      }
      instead_ = all;
      append(instead_, block(condition_, Json::array({more})));
    } else if (mistake == "swap") {
      if (piece_ + 1 >= pieces(section_).size() || every_step) {
        return false;
      }
      const Piece& next = pieces(section_)[piece_ + 1];
      if (right.is_message() || next.is_message() || next.condition != right.condition) {
        return false;
      }
      const Json& one = right.calls.front().begin().value();
      const Json& two = next.calls.front().begin().value();
      const bool differ = next.calls.front().begin().key() != op || next.group != right.group ||
                          !one.is_object() || !two.is_object() ||
                          one.value("numel", 0) != two.value("numel", 0);
      if (!differ) {
        return false;
      }
      Json other = statements_of(next);
      append(other, all);
      Json usual = all;
      append(usual, statements_of(next));
      instead_ = block(condition_, other, usual);
      covers_next_ = true;
    } else if (mistake == "early end") {
      if (every_step || !right.loop.empty()) {
        return false;
      }
      instead_ =
          block(condition_, Json::array({random_.once_in(2) ? Json{{"break", true}} : Json{{"exit", true}}}));
      append(instead_, all);
    } else if (mistake == "caught exception") {
      if (every_step || !right.loop.empty()) {
        return false;
      }
      catches_ = true;  // catches around the rest of the step
    } else if (mistake == "wrong numel") {
      if (!is_plain || !right.calls.front().begin().value().contains("numel") || right.is_message()) {
        return false;
      }
      const Rank size = static_cast<Rank>(layout_.members(right.group, 0).size());
      argument(call, "numel") = argument(call, "numel").get<int>() + 4 * size;
      instead_ = block(condition_, wrong, all);
    } else if (mistake == "wrong dtype") {
      if (!is_plain || op == "barrier") {
        return false;
      }
      argument(call, "dtype") = "float64";
      instead_ = block(condition_, wrong, all);
    } else if (mistake == "wrong operation") {
      if (!is_plain || op != "all_reduce") {
        return false;
      }
      Json arguments = right.calls.front().begin().value();
      wrong = Json::array({{{"broadcast", arguments}}});
      argument(wrong[0], "src") = 0;
      if (right.group != "world") {
        wrong = Json::array({{{"all_gather", arguments}}});
      }
      instead_ = block(condition_, wrong, all);
    } else if (mistake == "wrong reduction") {
      if (op != "all_reduce" && op != "reduce_scatter_tensor") {
        return false;
      }
      argument(call, "reduce_op") = "MAX";
      instead_ = block(condition_, wrong, all);
    } else if (mistake == "wrong root") {
      if (op != "broadcast") {
        return false;
      }
      argument(call, "src") = 1;
      instead_ = block(condition_, wrong, all);
    } else if (mistake == "wrong peer") {
      if (!is_plain || !right.is_message()) {
        return false;
      }
      const char* end = op == "send" ? "dst" : "src";
      const std::string peer = argument(call, end).get<std::string>();
      argument(call, end) =
          fmt::format("(({}) + 1) % world_size == rank ? ({} + 2) % world_size : ({} + 1) % world_size", peer,
                      peer, peer);
      instead_ = block(condition_, wrong, all);
    } else if (mistake == "wrong group") {
      if (!is_plain || right.is_message() || layout_.dims.empty()) {
        return false;
      }
      std::vector<std::string> groups = layout_.dims;
      groups.emplace_back("world");
      std::erase_if(groups, [&](const std::string& group) { return group == right.group || group == "pp"; });
      if (groups.empty()) {
        return false;
      }
      argument(call, "group") = random_.one_of(groups);
      instead_ = block(condition_, wrong, all);
    } else if (mistake == "dead rank") {
      if (every_step || !right.loop.empty()) {
        return false;
      }
      instead_ = block(condition_,
                       Json::array({{{"raise", "CUDA error: an illegal memory access was encountered"}}}));
      append(instead_, all);
    } else {
      return false;
    }
    return true;
  }

  Json step_statements() const {
    Json step = Json::array({{{"compute", "1ms"}}});
    Json* target = &step;
    Json guarded = Json::array();
    for (std::size_t s = 0; s < layout_.step.size(); ++s) {
      const Section& section = layout_.step[s];
      Json body = Json::array();
      Json* list = section.loop.empty() ? target : &body;
      for (std::size_t p = 0; p < section.pieces.size(); ++p) {
        const Piece& each = section.pieces[p];
        const bool is_here = mistaken_ && s == section_ && p == piece_;
        if (is_here && catches_) {
          guarded = block(condition_, Json::array({{{"raise", "bad sample"}}}));
          target = &guarded;
          list = section.loop.empty() ? target : list;
        }
        append(*list, block(each.condition, is_here && !catches_ ? instead_ : statements_of(each)));
        p += is_here && covers_next_ ? 1 : 0;
      }
      if (!section.loop.empty()) {
        target->push_back({{"for", section.loop}, {"in", {0, section.count}}, {"do", body}});
      }
    }
    if (catches_) {
      step.push_back(
          {{"try", {{"do", guarded}, {"except", Json::array({{{"print", "skipped: {error}"}}})}}}});
    }
    return step;
  }

  std::string text() const {
    Json scenario = {{"version", 1},
                     {"name", fmt::format("{} with a drawn mistake", layout_.name)},
                     {"world_size", layout_.world_size},
                     {"backend", backend_}};
    if (!layout_.dims.empty()) {
      scenario["mesh"] = {{"shape", layout_.shape}, {"dim_names", layout_.dims}};
    }
    if (!layout_.objects.empty()) {
      scenario["objects"] = layout_.objects.front();
    }
    Json program = Json::array();
    append(program, layout_.before);
    program.push_back({{"for", "step"}, {"in", {0, layout_.steps}}, {"do", step_statements()}});
    scenario["program"] = program;
    return scenario.dump(1);
  }

  Random random_;
  Layout layout_;
  std::string backend_;
  std::size_t section_ = 0;
  std::size_t piece_ = 0;
  Rank step_ = 0;
  std::string condition_;
  bool mistaken_ = false;
  bool covers_next_ = false;
  bool catches_ = false;
  Json instead_ = Json::array();
};

}  // namespace

const std::vector<std::string>& layouts() { return layout_names(); }

const std::vector<std::string>& mistakes() {
  static const std::vector<std::string> all = {"skip",
                                               "extra",
                                               "swap",
                                               "early end",
                                               "caught exception",
                                               "wrong numel",
                                               "wrong dtype",
                                               "wrong operation",
                                               "wrong reduction",
                                               "wrong root",
                                               "wrong peer",
                                               "wrong group",
                                               "dead rank"};
  return all;
}

DrawnJob drawn_job(std::uint64_t seed, bool healthy) { return Author(seed).write(healthy); }

}  // namespace rollcall::blame
