# Packages: `cpack -G DEB` and `cpack -G TGZ` in the build folder of the preset `package`. There are three Debian
# packages: rollcall, the program; librollcall-dev, the C++ library; and python3-pytest-rollcall, the plugin.
# dpkg-shlibdeps finds the dependencies of the program.

set(ROLLCALL_MAINTAINER "rollcall developers <maintainers@rollcall.invalid>" CACHE STRING
  "Who answers for a package: NAME <ADDRESS>")

set(CPACK_PACKAGE_NAME rollcall)
set(CPACK_PACKAGE_VENDOR "the rollcall developers")
set(CPACK_PACKAGE_CONTACT "${ROLLCALL_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "find the rank that is missing from a distributed program")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL program development pytest)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS program)
set(CPACK_COMPONENT_PYTEST_DEPENDS program)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME rollcall)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(gloo_package libgloo-dev)
if(ROLLCALL_OPENS_GLOO)
  set(gloo_package libgloo0)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS ${gloo_package})  # for `rollcall real`
endif()
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "librollcall-dev, python3-pytest-rollcall")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
  "rollcall runs the ranks of a torch.distributed program in simulation and
says which rank is missing from a hang, where and why. It reads the Flight
Recorder dumps of a real job for the same question. Scenarios of a training
program's communication become tests that need no GPU.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME librollcall-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libboost-fiber${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR}-dev | libboost-fiber-dev, \
libboost-context${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR}-dev | libboost-context-dev, libfmt-dev, zlib1g-dev")
if(ROLLCALL_HAS_ZSTD)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libzstd-dev")
endif()
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "catch2, ${gloo_package}")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
  "rollcall runs the ranks of a torch.distributed program in simulation. This
package has what C++ programs need to do the same: headers, libraries, a
CMake package, functions that make CTest tests of scenarios, and matchers
for Catch2.")

set(CPACK_DEBIAN_PYTEST_PACKAGE_NAME python3-pytest-rollcall)
set(CPACK_DEBIAN_PYTEST_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTEST_PACKAGE_DEPENDS "python3:any, python3-pytest (>= 7)")
set(CPACK_COMPONENT_PYTEST_DESCRIPTION
  "This plugin of pytest collects scenarios of rollcall, the simulator of
torch.distributed programs, as tests. The failure of one is rollcall's
report: which rank is missing, where and why.")

set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
include(CPack)
