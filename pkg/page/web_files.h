// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace resmgr {

// A file of pkg/page/web, compiled in (cmake/embed.cmake).
struct WebFile {
  std::string_view name;  // "page.css"
  std::string_view content;
};

std::span<const WebFile> WebFiles();

}  // namespace resmgr
