#pragma once

// A model and its layout as people write them: "llama3-8b,sequence=4096", "fsdp=8,tp=2,microbatch=2,compile".

#include <string_view>

#include "scenarios/predict/transformer.h"

namespace rollcall::predict {

// A preset's name, sizes as key=value, or both: the later one counts. Throws std::invalid_argument, with what is wrong
// and what was probably meant.
Transformer parse_transformer(std::string_view text);
Layout parse_layout(std::string_view text);

// Takes the first word of a list from it.
std::string_view next_word(std::string_view& rest);
// For one more word, after a list was parsed.
bool is_transformer_word(std::string_view word);
void change(Transformer& model, std::string_view word);
void change(Layout& layout, std::string_view word);

}  // namespace rollcall::predict
