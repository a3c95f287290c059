// The one main() of all tests. Nothing else belongs here: Catch2 makes this file slow to compile.

#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
