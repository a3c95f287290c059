#pragma once

// How text looks, decided once and passed to everything that writes for a person. Nothing below
// the command line checks the environment or the terminal.

#include <string>
#include <string_view>
#include <vector>

namespace rollcall::viz {

struct TextStyle {
  enum class Detail {
    quiet,    // the verdict's sentence
    normal,   // what a person needs to fix the fault; never long
    verbose,  // everything the report holds
  };

  // Columns of a report written to a file or a pipe, whatever the terminal: equal runs print equal bytes.
  static constexpr std::size_t usual_width = 100;

  Detail detail = Detail::normal;
  bool color = false;
  std::size_t width = usual_width;  // text is broken here
};

enum class ColorChoice { automatic, always, never };  // --color

// The environment's settings for color. Unset variables are empty.
struct Terminal {
  bool is_terminal = false;         // where the text goes
  std::string_view no_color;        // NO_COLOR
  std::string_view term;            // TERM
  std::string_view clicolor_force;  // CLICOLOR_FORCE
};

// The user's choice wins. Otherwise NO_COLOR and a dumb terminal turn color off, a terminal turns it on, and
// CLICOLOR_FORCE turns it on for pipes.
bool wants_color(ColorChoice choice, const Terminal& terminal);

// The few looks that text can have. They name a role, so that one place decides what red means.
enum class Look { plain, error, good, warning, strong, frame, faint };

// Returns `text` in that look; unchanged without color.
std::string paint(std::string_view text, Look look, bool color);

// Returns `text` with everything that a terminal could obey or choke on written out: "\n" and "\x1b" for control
// characters, "\xff" for bytes that are not UTF-8, "\u202e" for characters that change the direction of text.
std::string printable(std::string_view text);
// The same for every line; line breaks and tabs stay.
std::string printable_lines(std::string_view text);

// Returns `text` for a log that a CI system reads: GitHub's runner obeys lines that begin with "::", after blanks and
// colors, and "##[" anywhere. Both get a backslash. The commands that we give it ourselves do not pass through here.
std::string without_commands(std::string text);

// The number of columns that `text` takes: characters, not bytes.
std::size_t display_width(std::string_view text);

std::vector<std::string_view> split_lines(std::string_view text);

// Returns printable lines of at most `width` columns, broken at spaces; a longer word gets a line of its own.
// A number stays with the word before it. Line breaks in the text are kept. Returns at least one line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

}  // namespace rollcall::viz
