# Debian packages by CPack: one for each component, and one with the debug symbols of each that has
# programs. `ops/package` builds them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME atoll)
set(CPACK_PACKAGE_VENDOR Atoll)
set(CPACK_PACKAGE_CONTACT "Atoll developers <atoll@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_THREADS 0)  # all processors compress
# CPack makes the folders of a package with the umask of its caller. Debian requires 755.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
  GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# The changes are in CHANGELOG.md. Debian also wants a file of this form and name in each package.
# SOURCE_DATE_EPOCH in the environment fixes its date.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/changelog @ONLY CONTENT
"atoll (@PROJECT_VERSION@) unstable; urgency=medium

  * See CHANGELOG.md in the package atoll-server.

 -- @CPACK_PACKAGE_CONTACT@  @date@
")
file(ARCHIVE_CREATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz
  PATHS ${CMAKE_CURRENT_BINARY_DIR}/changelog FORMAT raw COMPRESSION GZip)

# deb_package(<component> <package> <summary> <description>): sets what all packages have, and
# installs the two documents that every package contains.
set(packaged)
macro(deb_package component package summary description)
  list(APPEND packaged ${component})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  # CPack puts the second line, indented, after the first one.
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${description}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${description}")
  install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/copyright ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component})
endmacro()

deb_package(server atoll-server "OLTP database engine for one large machine"
  "One process per NUMA node runs serializable transactions over shared
memory, and group commit makes them durable. This package has the command
atoll, the programs of a cluster, and a systemd unit.")
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "adduser, python3:any")
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS "prometheus, bash-completion")
set(CPACK_DEBIAN_SERVER_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
  ${CMAKE_CURRENT_SOURCE_DIR}/debian/server/conffiles
  ${CMAKE_CURRENT_SOURCE_DIR}/debian/server/postinst
  ${CMAKE_CURRENT_SOURCE_DIR}/debian/server/prerm
  ${CMAKE_CURRENT_SOURCE_DIR}/debian/server/postrm)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_STRICT_PERMISSION ON)

deb_package(client libatoll-client0 "client library of the Atoll database"
  "Programs use a running Atoll cluster through the C interface of this
library.")
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_CLIENT_PACKAGE_CONTROL_EXTRA
  ${CMAKE_CURRENT_SOURCE_DIR}/debian/client/triggers)
set(CPACK_DEBIAN_CLIENT_DEBUGINFO_PACKAGE ON)

set(same_version "(= ${PROJECT_VERSION})")
deb_package(client_dev libatoll-client-dev "client library of the Atoll database: development"
  "The C header, and files for pkg-config and CMake.")
set(CPACK_DEBIAN_CLIENT_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_CLIENT_DEV_PACKAGE_DEPENDS "libatoll-client0 ${same_version}")

deb_package(python3 python3-atoll "client of the Atoll database for Python"
  "Typed, with transactions, scans as iterators, exceptions by status, and
asyncio.")
set(CPACK_DEBIAN_PYTHON3_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON3_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON3_PACKAGE_DEPENDS
  "python3 (>= 3.11), python3-cffi (>= 1.15), libatoll-client0 (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON3_PACKAGE_CONTROL_EXTRA
  ${CMAKE_CURRENT_SOURCE_DIR}/debian/python3/postinst
  ${CMAKE_CURRENT_SOURCE_DIR}/debian/python3/prerm)
set(CPACK_DEBIAN_PYTHON3_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# Public headers for procedures outside the tree, if the build installs any.
get_cmake_property(components COMPONENTS)
if("dev" IN_LIST components)
  deb_package(dev atoll-dev "OLTP database engine Atoll: headers for procedures"
    "The headers that procedure libraries include, and files for pkg-config
and CMake.")
  set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "atoll-server ${same_version}")
endif()

set(CPACK_COMPONENTS_ALL ${packaged})
include(CPack)
