# Runs during an installation. Writes the unit of systemd with the paths of this installation.
# Variables: unit_template, bin_dir, config_dir; the paths may be relative to the prefix.
cmake_path(ABSOLUTE_PATH bin_dir BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" NORMALIZE
  OUTPUT_VARIABLE BINDIR)
cmake_path(ABSOLUTE_PATH config_dir BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" NORMALIZE
  OUTPUT_VARIABLE CONFIG_DIR)
set(unit "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/systemd/system/atoll@.service")
message(STATUS "Installing: ${unit}")
configure_file("${unit_template}" "${unit}" @ONLY FILE_PERMISSIONS
  OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
