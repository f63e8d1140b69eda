# SPDX-License-Identifier: Apache-2.0
# Installing: library, headers, CMake package, pkg-config file; and packages made of them (cpack -G DEB).
include(CMakePackageConfigHelpers)

install(TARGETS tconv_cl EXPORT tconv_clTargets)
install(DIRECTORY include/tconv_cl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TCONV_BUILD_PYTHON)
    install(TARGETS tconv_cl LIBRARY DESTINATION tconv_cl COMPONENT python)
endif()
if(TARGET tconv-cl)
    install(TARGETS tconv-cl)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tconv_cl)
install(EXPORT tconv_clTargets NAMESPACE tconv_cl:: DESTINATION ${package_dir})
configure_package_config_file(cmake/tconv_clConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tconv_clConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tconv_clConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tconv_clConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/tconv_clConfigVersion.cmake DESTINATION ${package_dir})

# The .pc file finds its prefix from where it lies, so that an installation can be moved.
file(RELATIVE_PATH TCONV_PC_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file(cmake/tconv_cl.pc.in ${CMAKE_CURRENT_BINARY_DIR}/tconv_cl.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tconv_cl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR}) # the README has links to them
install(DIRECTORY examples/consumer DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)

set(CPACK_PACKAGE_NAME tconv-cl)
set(CPACK_PACKAGE_VENDOR "tconv-cl")
set(CPACK_PACKAGE_CONTACT "tconv-cl developers <tconv-cl@example.org>")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "ocl-icd-opencl-dev") # headers, loader and pkg-config file of OpenCL
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
include(CPack)
