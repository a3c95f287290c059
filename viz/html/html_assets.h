#pragma once

// The style and script that every HTML report carries, embedded when rollcall is built.

#include <string_view>

namespace rollcall::viz {

std::string_view html_style();   // viz/html/html_report.css
std::string_view html_script();  // viz/html/timeline/*.js

}  // namespace rollcall::viz
