// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/nri/plugin_name.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::nri {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWebAssembly{"\0asm\1\0\0\0", 8};

bool IsExecutable(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && (found.st_mode & 0111) != 0;
}

bool IsWebAssembly(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, kWebAssembly.size()> begin{};
  const ssize_t got = file.valid() ? ::read(file.get(), begin.data(), begin.size()) : 0;
  return got == static_cast<ssize_t>(begin.size()) &&
         std::string_view(begin.data(), begin.size()) == kWebAssembly;
}

StatusOr<std::string> ConfigOf(const std::string& directory, const PluginFile& plugin) {
  if (directory.empty()) return std::string();
  for (const std::string& name : {FullPluginName(plugin.index, plugin.name), plugin.name}) {
    StatusOr<std::string> text =
        ReadFile(fmt::format("{}/{}.conf", directory, name), kLongestPluginConfig);
    if (text.ok() || text.status().code() != StatusCode::kNotFound) return text;
  }
  return std::string();
}

}  // namespace

PluginNames ListPluginFiles(const std::string& plugin_path) {
  PluginNames found;
  std::vector<std::string>& files = found.files;
  std::error_code error;
  for (fs::directory_iterator each(plugin_path, error), end; !error && each != end;
       each.increment(error)) {
    if (!IsExecutable(each->path().string())) continue;
    // Keeps the first ones by name, whatever the order of the directory's listing.
    std::string name = each->path().filename().string();
    files.insert(std::upper_bound(files.begin(), files.end(), name), std::move(name));
    if (files.size() > kMostPluginFiles + 1) files.pop_back();
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    found.warnings.push_back(
        fmt::format("cannot read the plugins of {}: {}", plugin_path, error.message()));
  }
  if (files.size() > kMostPluginFiles) {
    found.warnings.push_back(
        fmt::format("{} has more than {} plugins; those from {} on are not started", plugin_path,
                    kMostPluginFiles, Printable(files.back())));
    files.pop_back();
  }
  return found;
}

StatusOr<PluginFile> ReadPluginFile(const std::string& plugin_path, const std::string& file,
                                    const std::string& config_path) {
  const std::string path = fmt::format("{}/{}", plugin_path, file);
  PluginFile plugin{.path = path, .index = {}, .name = {}, .config = {}};
  const size_t dash = std::min(file.find('-'), file.size());
  plugin.index = file.substr(0, dash);
  plugin.name = file.substr(std::min(dash + 1, file.size()));
  RESMGR_RETURN_IF_ERROR(
      Annotate(CheckPluginName(plugin.index, plugin.name), "its file is not called NN-name"));
  if (IsWebAssembly(path)) return Unimplemented("WebAssembly plugins cannot be run");
  RESMGR_ASSIGN_OR_RETURN(plugin.config, ConfigOf(config_path, plugin));
  return plugin;
}

}  // namespace resmgr::nri
