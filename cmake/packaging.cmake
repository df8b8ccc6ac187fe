# SPDX-License-Identifier: Apache-2.0
# Debian packages by CPack (pkg/adr/0007-packages.md): `cpack -G DEB` in a release build, or scripts/package.

file(STRINGS cmake/debian/changelog first_line LIMIT_COUNT 1)
if(NOT first_line MATCHES "^cri-resmgr \\(${PROJECT_VERSION}\\) ")
  message(FATAL_ERROR "cmake/debian/changelog: the first entry is not of version ${PROJECT_VERSION}: ${first_line}")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cmake/debian/changelog)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cri-resmgr)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "cri-resmgr developers")
set(CPACK_PACKAGE_CONTACT "cri-resmgr developers <cri-resmgr@packages.example.org>")
# Files of /etc are outside of the prefix.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL daemon agent webhook)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)  # else that of the machine
endif()
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# resmgr_package(COMPONENT NAME CONFIG... UNITS... SOCKETS... STATE... SUMMARY "one line" TEXT "lines"): CONFIG are the
# conffiles, STATE what a purge removes. SOCKETS are units that stay as they are when the services are started again.
function(resmgr_package component name)
  cmake_parse_arguments(ARG "" "SUMMARY;TEXT" "CONFIG;UNITS;SOCKETS;STATE" ${ARGN})
  set(directory ${PROJECT_BINARY_DIR}/debian/${name})
  list(JOIN ARG_UNITS " " UNITS)
  list(JOIN ARG_SOCKETS " " SOCKETS)
  list(JOIN ARG_STATE " " STATE)
  set(scripts)
  foreach(script IN ITEMS postinst prerm postrm)
    configure_file(cmake/debian/${script}.in ${directory}/${script} @ONLY FILE_PERMISSIONS
      OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    list(APPEND scripts ${directory}/${script})
  endforeach()
  list(JOIN ARG_CONFIG "\n" conffiles)
  file(WRITE ${directory}/conffiles "${conffiles}\n")
  file(CHMOD ${directory}/conffiles PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  add_custom_command(OUTPUT ${directory}/changelog.gz
    COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/cmake/debian/changelog > ${directory}/changelog.gz
    DEPENDS ${PROJECT_SOURCE_DIR}/cmake/debian/changelog
    VERBATIM)
  add_custom_target(${name}-changelog ALL DEPENDS ${directory}/changelog.gz)
  install(FILES cmake/debian/copyright ${directory}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
    COMPONENT ${component})
  if(EXISTS ${PROJECT_SOURCE_DIR}/cmake/debian/${name}.lintian-overrides)
    install(FILES cmake/debian/${name}.lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
      RENAME ${name} COMPONENT ${component})
  endif()
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${ARG_SUMMARY}\n${ARG_TEXT}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${ARG_SUMMARY}\n${ARG_TEXT}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA "${directory}/conffiles;${scripts}" PARENT_SCOPE)
endfunction()

resmgr_package(daemon cri-resmgr
  CONFIG /etc/cri-resmgr/cri-resmgr.yaml /etc/default/cri-resmgr
  UNITS cri-resmgr.service cri-resmgr-nri.service
  SOCKETS cri-resmgr.socket
  STATE /var/lib/cri-resmgr /run/cri-resmgr
  SUMMARY "places containers on CPUs and memory, before the container runtime"
  TEXT "The daemon stands between the kubelet and containerd or CRI-O, or is a
plugin of the runtime's NRI. A policy decides on which CPUs and memory nodes
each container runs, and all that need not be understood passes byte for byte.
.
With it comes cri-resmgr-ctl, which shows and changes what the daemon does,
and tries placements on any machine. After installation nothing runs yet: see
/usr/share/doc/cri-resmgr/README.md.")
# kill, by which `systemctl reload` has the configuration read again.
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS "procps")
set(CPACK_DEBIAN_DAEMON_PACKAGE_RECOMMENDS "containerd | cri-o")
set(CPACK_DEBIAN_DAEMON_PACKAGE_SUGGESTS "cri-resmgr-agent")

resmgr_package(agent cri-resmgr-agent
  CONFIG /etc/default/cri-resmgr-agent
  UNITS cri-resmgr-agent.service
  SUMMARY "brings cri-resmgr its configuration from Kubernetes"
  TEXT "The agent of a node watches the ConfigMaps that configure cri-resmgr there,
delivers them, and shows on the node's object what became of them.")
set(CPACK_DEBIAN_AGENT_PACKAGE_RECOMMENDS "cri-resmgr")

resmgr_package(webhook cri-resmgr-webhook
  CONFIG /etc/default/cri-resmgr-webhook
  UNITS cri-resmgr-webhook.service
  SUMMARY "tells cri-resmgr what pods ask for, at their admission"
  TEXT "A mutating admission webhook: it writes the resource requirements of a pod's
containers into the pod's annotation intel.com/resources, where cri-resmgr
reads what the CRI does not tell. It refuses nothing.")

include(CPack)
