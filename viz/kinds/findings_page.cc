#include "viz/kinds/findings_page.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/expects.h"
#include "sim/report/finding_kinds.h"

namespace rollcall::viz {
namespace {

struct Item {
  std::string_view key;
  std::string Explanation::*text;
};

constexpr Item items[] = {{"Typical cause", &Explanation::cause},
                          {"Help", &Explanation::advice},
                          {"On Gloo", &Explanation::on_gloo},
                          {"On NCCL", &Explanation::on_nccl},
                          {"Reports", &Explanation::reports}};

// Cuts `text` after the first `mark`, and returns the part before it. Empty if there is no mark.
std::optional<std::string_view> cut_before(std::string_view& text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at + mark.size());
  return before;
}

void add_words(std::string& paragraph, std::string_view line) {
  if (!paragraph.empty()) {
    paragraph += ' ';
  }
  paragraph += line;
}

class PageReader {
 public:
  std::vector<Explanation> read(std::string_view page) {
    while (const std::optional<std::string_view> line = cut_before(page, "\n")) {
      take(*line);
    }
    expects(page.empty(), "the page of findings ends with a line break");
    expects(!in_example_, "every example of the page of findings ends");
    std::ranges::for_each(found_, [this](Explanation& each) { fill_in_shared(each); });
    return std::move(found_);
  }

 private:
  void take(std::string_view line) {
    if (line.starts_with("```")) {
      in_example_ = !in_example_;
    } else if (in_example_) {
      std::string& example = found_.back().example;
      example += example.empty() ? "" : "\n";
      example += line;
    } else if (line.starts_with("## ")) {
      begin(line.substr(3), true);
    } else if (line.starts_with("### ")) {
      begin(line.substr(4), false);
    } else if (line.starts_with("- **")) {
      begin_item(line.substr(4));
    } else if (line.empty()) {
      return;
    } else if (paragraph_ != nullptr) {
      add_words(*paragraph_, line.starts_with("  ") ? line.substr(2) : line);
    }
  }

  void begin(std::string_view heading, bool is_verdict) {
    std::string_view title = heading;
    const std::optional<std::string_view> word = cut_before(title, ": ");
    if (is_verdict) {
      verdict_ = word.value_or("");
    }
    if (word) {
      Explanation& entry = found_.emplace_back();
      entry.word = *word;
      entry.verdicts = is_verdict ? "" : verdicts_with(*word);
      entry.title = title;
      paragraph_ = &entry.meaning;
    } else {
      paragraph_ = is_verdict ? nullptr : &shared_[std::string(heading)];
    }
  }

  std::string_view verdicts_with(std::string_view word) const {
    const std::optional<FindingKind> kind = parse_finding_kind(word);
    expects(kind && to_string(*kind) == word, "the page of findings explains kinds that exist");
    const std::string_view verdicts = verdicts_of(*kind);
    expects(verdicts.substr(0, verdicts.find(',')) == verdict_,
            "a kind stands below the verdict that it usually comes with");
    return verdicts;
  }

  void begin_item(std::string_view line) {
    const std::optional<std::string_view> key = cut_before(line, "**: ");
    const auto* const item = std::ranges::find(items, key.value_or(""), &Item::key);
    expects(item != std::end(items), "every item on the page of findings is a part of explanations");
    paragraph_ = &(found_.back().*item->text);
    expects(paragraph_->empty(), "an explanation has every part once");
    *paragraph_ = line;
  }

  // Replaces "[gloo_timeout](#gloo_timeout)" with the shared text of that name.
  void fill_in_shared(Explanation& entry) const {
    for (std::string Explanation::*text : {&Explanation::on_gloo, &Explanation::on_nccl}) {
      std::string_view link = entry.*text;
      if (link.starts_with("[")) {
        link.remove_prefix(1);
        const auto shared = shared_.find(std::string(cut_before(link, "](#").value_or("")));
        expects(shared != shared_.end(), "what explanations share is on the page of findings");
        entry.*text = shared->second;
      }
    }
  }

  std::vector<Explanation> found_;
  std::map<std::string, std::string> shared_;
  std::string_view verdict_;          // of the following kinds; empty if they are kinds of recordings
  std::string* paragraph_ = nullptr;  // the one that the next lines continue; null if they belong to none
  bool in_example_ = false;
};

}  // namespace

std::vector<Explanation> read_findings(std::string_view page) { return PageReader().read(page); }

}  // namespace rollcall::viz
