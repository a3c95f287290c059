#include "sim/base/site.h"

#include <string_view>

namespace rollcall {

std::string to_string(const Site& site) {
  if (!site) {
    return {};
  }
  std::string_view file = site.file;
  if (site.column == 0) {  // a line of a foreign program, for which no more is known: it keeps its path
    return std::string(file) + ":" + std::to_string(site.line);
  }
  file.remove_prefix(file.find_last_of('/') == std::string_view::npos ? 0 : file.find_last_of('/') + 1);
  return std::string(file) + ":" + std::to_string(site.line) + ":" + std::to_string(site.column);
}

}  // namespace rollcall
