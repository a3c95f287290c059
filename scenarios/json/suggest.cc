#include "scenarios/json/suggest.h"

#include <algorithm>
#include <array>
#include <vector>

namespace rollcall::scenario {
namespace {

char folded(char letter) {
  if (letter >= 'A' && letter <= 'Z') {
    return static_cast<char>(letter - 'A' + 'a');
  }
  return letter == '-' || letter == ' ' ? '_' : letter;
}

bool same(char a, char b) { return folded(a) == folded(b); }

// A third of the word may be wrong, and at least one letter of anything longer than one.
std::size_t tolerance(std::string_view word) {
  return std::max<std::size_t>(word.size() > 1 ? 1 : 0, word.size() / 3);
}

// Other names for the same things, from torch, NumPy, and NCCL: too different to be typing errors.
struct Synonym {
  std::string_view word;
  std::string_view known;
};
constexpr std::array<Synonym, 16> synonyms = {{{"fp32", "float32"},
                                               {"float", "float32"},
                                               {"fp64", "float64"},
                                               {"double", "float64"},
                                               {"fp16", "float16"},
                                               {"half", "float16"},
                                               {"bf16", "bfloat16"},
                                               {"int", "int32"},
                                               {"long", "int64"},
                                               {"short", "int16"},
                                               {"char", "int8"},
                                               {"byte", "uint8"},
                                               {"op", "reduce_op"},
                                               {"count", "numel"},
                                               {"size", "numel"},
                                               {"nranks", "world_size"}}};

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table (optimal string alignment): two back, one back, current.
  std::vector<std::size_t> two_back(b.size() + 1);
  std::vector<std::size_t> back(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    back[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = back[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({back[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], two_back[j - 2] + 1);
      }
    }
    two_back.swap(back);
    back.swap(row);
  }
  return back[b.size()];
}

std::string_view suggest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t word_max = 64;  // longer words are not typing errors
  const auto synonym = std::ranges::find(synonyms, word, &Synonym::word);
  if (synonym != synonyms.end() && std::ranges::find(candidates, synonym->known) != candidates.end()) {
    return synonym->known;
  }
  std::string_view best;
  std::size_t best_distance = tolerance(word) + 1;
  for (std::string_view candidate : candidates) {
    if (word.size() > word_max || candidate.size() > word_max) {
      continue;
    }
    if (const std::size_t distance = edit_distance(word, candidate); distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace rollcall::scenario
