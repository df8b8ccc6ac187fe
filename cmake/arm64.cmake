# SPDX-License-Identifier: Apache-2.0
# A toolchain of CMake: clang and lld build for arm64, with Debian's packages of that architecture below RESMGR_SYSROOT
# (scripts/build-arm64). Generators of code are those of the machine that builds; what is built runs by RESMGR_QEMU.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_SYSROOT ${RESMGR_SYSROOT})
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RESMGR_SYSROOT RESMGR_QEMU)
set(CMAKE_CROSSCOMPILING_EMULATOR ${RESMGR_QEMU} -L ${RESMGR_SYSROOT})
set(CMAKE_C_COMPILER clang)
set(CMAKE_CXX_COMPILER clang++)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR}
  "${RESMGR_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${RESMGR_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${RESMGR_SYSROOT}")
