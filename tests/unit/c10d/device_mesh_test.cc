#include "sim/c10d/device_mesh.h"
#include "tests/catch.h"

namespace rollcall::device_mesh_test {

TEST_CASE("a mesh has a group along every row of every dimension", "[mesh]") {
  const MeshShape mesh{{2, 2}, {"dp", "tp"}};
  CHECK(mesh.groups_along(0) == std::vector<RankList>{{0, 2}, {1, 3}});
  CHECK(mesh.groups_along(1) == std::vector<RankList>{{0, 1}, {2, 3}});
}

// By their first ranks, as tests/data/torch_2_14/mesh shows.
TEST_CASE("a mesh orders its groups as DeviceMesh does", "[mesh]") {
  const MeshShape mesh{{2, 3, 2}, {"pp", "dp", "tp"}};
  CHECK(mesh.groups_along(0) == std::vector<RankList>{{0, 6}, {1, 7}, {2, 8}, {3, 9}, {4, 10}, {5, 11}});
  CHECK(mesh.groups_along(1) == std::vector<RankList>{{0, 2, 4}, {1, 3, 5}, {6, 8, 10}, {7, 9, 11}});
  CHECK(mesh.groups_along(2) == std::vector<RankList>{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}});
}

// As tests/data/torch_2_6/mesh shows.
TEST_CASE("before 2.14 a dimension of a mesh changed places with the last one", "[mesh]") {
  const MeshShape mesh{{2, 2, 2}, {"pp", "dp", "tp"}};
  CHECK(mesh.rows_by_swap(0) == std::vector<Rank>{0, 2, 1, 3});
  CHECK(mesh.rows_by_swap(1) == std::vector<Rank>{0, 1, 2, 3});
  CHECK(mesh.rows_by_swap(2) == std::vector<Rank>{0, 1, 2, 3});
}

TEST_CASE("flattened dimensions of a mesh have groups as one dimension has", "[mesh]") {
  const MeshShape mesh{{2, 3, 2}, {"pp", "dp", "tp"}};
  CHECK(mesh.groups_along({0, 2}) == std::vector<RankList>{{0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 11}});
  CHECK(mesh.row_of({0, 2}, 9) == 1);
  CHECK(mesh.place_in({0, 2}, 9) == 3);
}

TEST_CASE("a rank stands where its number puts it in the mesh", "[mesh]") {
  const MeshShape mesh{{2, 3}, {"dp", "tp"}};
  CHECK(mesh.size() == 6);
  CHECK(mesh.coordinate_of(4) == std::vector<Rank>{1, 1});
  CHECK(mesh.coordinate_of(6).empty());
}

}  // namespace rollcall::device_mesh_test
