#pragma once

// Catch2, version 2 or 3: the parts that tests use, under the same names for both.

#include <string>

#if __has_include(<catch2/catch_all.hpp>)

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

inline auto Contains(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
using Catch::Approx;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

#else

#include <catch2/catch.hpp>

using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

#endif
