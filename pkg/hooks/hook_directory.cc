// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_directory.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "pkg/hooks/hook_file.h"
#include "pkg/sys/errno_status.h"
#include "pkg/sys/files.h"

namespace resmgr::hooks {
namespace {

namespace fs = std::filesystem;

bool IsHookFileName(std::string_view name) {
  return name.ends_with(".json") && !name.starts_with('.');
}

StatusOr<std::vector<std::string>> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator each(path, error), end; !error && each != end;
       each.increment(error)) {
    std::string name = each->path().filename().string();
    if (!IsHookFileName(name)) continue;
    // The first ones by name, whatever the order in which the directory lists them.
    names.insert(std::upper_bound(names.begin(), names.end(), name), name);
    if (names.size() > kMostHookFiles) names.pop_back();
  }
  if (error == std::errc::no_such_file_or_directory) return std::vector<std::string>();
  if (error) return ErrnoStatus(error.value(), "cannot list the hook directory");
  return names;
}

}  // namespace

StatusOr<std::vector<HookFileText>> ReadHookDirectory(const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(path));
  std::vector<HookFileText> files;
  for (const std::string& name : names) {
    StatusOr<std::string> text = ReadFile(fmt::format("{}/{}", path, name), kLongestHookFile);
    if (text.status().code() != StatusCode::kNotFound) files.push_back({name, std::move(text)});
  }
  return files;
}

}  // namespace resmgr::hooks
