# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` and the Debian packages (packaging.cmake) have besides the programs: manual pages and completion,
# which the programs themselves print, units, configuration, samples and pages. One component for each package.

# Builds with sanitizers are not installed: they make the documents, and programs that no test starts, only when asked for.
set(resmgr_with_programs ALL)
if(RESMGR_SANITIZE)
  set(resmgr_with_programs)
endif()

# resmgr_documents(PROGRAM COMPONENT): its manual page and its completion.
function(resmgr_documents program component)
  set(directory ${PROJECT_BINARY_DIR}/documents)
  file(MAKE_DIRECTORY ${directory})
  set(page ${directory}/${program}.8)
  set(bash ${directory}/${program}.bash)
  set(zsh ${directory}/_${program})
  # Not by a pipe, which would hide that the program failed.
  add_custom_command(OUTPUT ${page}.gz ${bash} ${zsh}
    COMMAND ${program} -help=man > ${page}
    COMMAND gzip -9nf ${page}
    COMMAND ${program} -help=bash > ${bash}
    COMMAND ${program} -help=zsh > ${zsh}
    DEPENDS ${program}
    VERBATIM)
  add_custom_target(${program}-documents ${resmgr_with_programs} DEPENDS ${page}.gz ${bash} ${zsh})
  install(FILES ${page}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT ${component})
  install(FILES ${bash} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME ${program} COMPONENT ${component})
  install(FILES ${zsh} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT ${component})
endfunction()

# resmgr_units(COMPONENT FILE...): systemd units, which name the programs and the configuration where they are installed.
function(resmgr_units component)
  foreach(file IN LISTS ARGN)
    install(CODE "set(RESMGR_UNIT \"${PROJECT_SOURCE_DIR}/${file}\")" COMPONENT ${component})
    install(SCRIPT cmake/install_unit.cmake COMPONENT ${component})
  endforeach()
endfunction()

# resmgr_config(COMPONENT FILE PATH): PATH below /etc where the prefix is /usr, else below PREFIX/etc. A file that is there
# already stays.
function(resmgr_config component file path)
  install(CODE "set(RESMGR_CONFIG \"${PROJECT_SOURCE_DIR}/${file}\")
set(RESMGR_CONFIG_PATH \"${path}\")" COMPONENT ${component})
  install(SCRIPT cmake/install_config.cmake COMPONENT ${component})
endfunction()

resmgr_documents(cri-resmgr daemon)
set(config_page ${PROJECT_BINARY_DIR}/documents/cri-resmgr.yaml.5)
add_custom_command(OUTPUT ${config_page}.gz
  COMMAND cri-resmgr -print-config-page > ${config_page}
  COMMAND gzip -9nf ${config_page}
  DEPENDS cri-resmgr
  VERBATIM)
add_custom_target(cri-resmgr-config-page ${resmgr_with_programs} DEPENDS ${config_page}.gz)
install(FILES ${config_page}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man5 COMPONENT daemon)
# It is the same program, whose page has the flags that this name has a form of.
set(link ${PROJECT_BINARY_DIR}/documents/koord-runtime-proxy.8.gz)
file(CREATE_LINK cri-resmgr.8.gz ${link} SYMBOLIC)
install(FILES ${link} DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT daemon)
resmgr_documents(cri-resmgr-ctl daemon)
resmgr_documents(cri-resmgr-agent agent)
resmgr_documents(cri-resmgr-webhook webhook)

resmgr_units(daemon sample-configs/systemd/cri-resmgr.service sample-configs/systemd/cri-resmgr.socket
  sample-configs/nri-plugin/cri-resmgr-nri.service)
resmgr_units(agent sample-configs/systemd/cri-resmgr-agent.service)
resmgr_units(webhook sample-configs/systemd/cri-resmgr-webhook.service)

resmgr_config(daemon sample-configs/null.yaml cri-resmgr/cri-resmgr.yaml)
resmgr_config(daemon cmake/debian/default/cri-resmgr default/cri-resmgr)
resmgr_config(agent cmake/debian/default/cri-resmgr-agent default/cri-resmgr-agent)
resmgr_config(webhook cmake/debian/default/cri-resmgr-webhook default/cri-resmgr-webhook)

set(pages ${CMAKE_INSTALL_DATADIR}/doc)
install(FILES README.md CHANGELOG.md DESTINATION ${pages}/cri-resmgr COMPONENT daemon)
install(DIRECTORY docs DESTINATION ${pages}/cri-resmgr COMPONENT daemon)
install(DIRECTORY sample-configs/ DESTINATION ${pages}/cri-resmgr/examples COMPONENT daemon)
foreach(policy IN ITEMS static static-plus topology-aware balloons)
  install(FILES policies/${policy}/README.md DESTINATION ${pages}/cri-resmgr/policies/${policy} COMPONENT daemon)
endforeach()
install(FILES agent/README.md DESTINATION ${pages}/cri-resmgr-agent COMPONENT agent)
install(FILES webhook/README.md DESTINATION ${pages}/cri-resmgr-webhook COMPONENT webhook)
foreach(package IN ITEMS daemon:cri-resmgr agent:cri-resmgr-agent webhook:cri-resmgr-webhook)
  string(REPLACE ":" ";" package ${package})
  list(GET package 0 component)
  list(GET package 1 name)
  install(CODE "set(PAGES \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${pages}/${name}\")" COMPONENT ${component})
  install(SCRIPT cmake/install_pages.cmake COMPONENT ${component})
endforeach()
