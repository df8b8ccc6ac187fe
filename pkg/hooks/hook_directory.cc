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
    // Keeps the first ones by name, whatever the order of the directory's listing.
    names.insert(std::upper_bound(names.begin(), names.end(), name), name);
    if (names.size() > kMostHookFilesRead + 1) names.pop_back();
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
    const bool beyond_limit = files.size() >= kMostHookFiles;
    if (files.size() == kMostHookFilesRead) {
      files.push_back({name,
                       ResourceExhausted("neither it nor what follows it is read, not even for "
                                         "its failure policy: the directory has more than {} files",
                                         kMostHookFilesRead),
                       beyond_limit});
      break;
    }
    StatusOr<std::string> text = ReadFile(fmt::format("{}/{}", path, name), kLongestHookFile);
    if (text.status().code() == StatusCode::kNotFound) continue;
    files.push_back({name, std::move(text), beyond_limit});
  }
  return files;
}

}  // namespace resmgr::hooks
