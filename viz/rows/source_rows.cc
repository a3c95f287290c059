#include "viz/rows/source_rows.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/utf8.h"
#include "viz/base/text_style.h"
#include "viz/rows/verdict_parts.h"

namespace rollcall::viz {

namespace {

constexpr std::size_t sites_max = 3;

}  // namespace

std::vector<std::string> sites_to_show(const Verdict& verdict) {
  std::vector<std::string> sites;
  const auto add = [&sites](const std::string& site) {
    if (!site.empty() && sites.size() < sites_max && std::ranges::find(sites, site) == sites.end()) {
      sites.push_back(site);
    }
  };
  add(place_to_look(verdict));
  if (const Finding* finding = finding_of(verdict); finding != nullptr && finding->first_divergence) {
    std::ranges::for_each(finding->first_divergence->variants,
                          [&](const Variant& each) { add(each.call.site); });
  } else if (const std::vector<Variant>* variants = variants_of(verdict)) {
    std::ranges::for_each(*variants, [&](const Variant& each) { add(each.call.site); });
  }
  return sites;
}

std::vector<Call> calls_to_show(const Diagnosis& diagnosis) {
  std::vector<Call> calls;
  const auto add = [&calls](const Call& call) {
    if (!call.site.empty() && calls.size() < sites_max &&
        std::ranges::find(calls, call.site, &Call::site) == calls.end()) {
      calls.push_back(call);
    }
  };
  if (diagnosis.finding.at) {
    add(diagnosis.finding.at->call);
  }
  std::ranges::for_each(diagnosis.variants, [&](const Variant& each) { add(each.call); });
  std::ranges::for_each(diagnosis.held, [&](const Victim& each) { add(each.call); });
  std::ranges::for_each(diagnosis.victims, [&](const Victim& each) { add(each.call); });
  return calls;
}

const SourceLine* source_of(const std::vector<SourceLine>& sources, const std::string& site) {
  const auto line = std::ranges::find(sources, site, &SourceLine::site);
  return line == sources.end() ? nullptr : &*line;
}

std::string path_of_site(const std::vector<SourceLine>& sources, const std::string& site) {
  const SourceLine* source = source_of(sources, site);
  if (source == nullptr) {
    return site;
  }
  const std::string column = source->column > 0 ? fmt::format(":{}", source->column) : "";
  return fmt::format("{}:{}{}", source->path, source->line, column);
}

Excerpt excerpt_of(const SourceLine& line) {
  constexpr std::size_t width_max = 88;
  constexpr std::size_t indent_max = 4;
  std::string text = line.text;
  std::ranges::replace(text, '\t', ' ');
  const std::size_t indent = std::min(text.find_first_not_of(' '), text.size());
  std::size_t cut = indent - std::min(indent, indent_max);
  const auto column = static_cast<std::size_t>(std::max<std::int64_t>(line.column, 0));
  const bool is_inside = column > 0 && column <= text.size();
  if (is_inside && column > cut + width_max * 3 / 4) {
    cut = column - width_max / 4;  // a long line with many calls
  }
  Excerpt excerpt;
  excerpt.mark =
      is_inside && column > cut ? static_cast<int>(display_width(text.substr(cut, column - 1 - cut))) : -1;
  excerpt.text = printable(text.substr(std::min(cut, text.size())));
  if (excerpt.text.size() > width_max) {
    excerpt.text = excerpt.text.substr(0, character_start(excerpt.text, width_max)) + "...";
  }
  return excerpt;
}

}  // namespace rollcall::viz
