// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_finder.h"

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
#include "pkg/nri/protocol.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::nri {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestPluginConfig = size_t{1} << 20;
constexpr std::string_view kWebAssembly{"\0asm\1\0\0\0", 8};

bool IsExecutable(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && (found.st_mode & 0111) != 0;
}

// Splits NN-name.
PluginFile NamedPlugin(std::string path, std::string_view file) {
  const size_t dash = std::min(file.find('-'), file.size());
  return {.path = std::move(path),
          .index = std::string(file.substr(0, dash)),
          .name = std::string(file.substr(std::min(dash + 1, file.size()))),
          .config = {}};
}

// Whether a plugin was probably copied there without the right to execute it.
bool LacksRightToExecute(const std::string& path, std::string_view file) {
  const PluginFile plugin = NamedPlugin(path, file);
  struct stat found {};
  return CheckPluginName(plugin.index, plugin.name).ok() && ::stat(path.c_str(), &found) == 0 &&
         S_ISREG(found.st_mode);
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
    std::string name = each->path().filename().string();
    if (!IsExecutable(each->path().string())) {
      if (found.warnings.size() < kMostPluginFiles &&
          LacksRightToExecute(each->path().string(), name)) {
        found.warnings.push_back(fmt::format("plugin {} is not started: it is not executable",
                                             Printable(each->path().string())));
      }
      continue;
    }
    // Only the first names in alphabetical order are kept, in whatever order the directory lists
    // them.
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
  PluginFile plugin = NamedPlugin(path, file);
  RESMGR_RETURN_IF_ERROR(
      Annotate(CheckPluginName(plugin.index, plugin.name), "its file is not called NN-name"));
  if (IsWebAssembly(path)) return Unimplemented("WebAssembly plugins cannot be run");
  RESMGR_ASSIGN_OR_RETURN(plugin.config, ConfigOf(config_path, plugin));
  return plugin;
}

PluginFinder::PluginFinder(EventLoop& loop, Options options,
                           std::function<void(const Found&)> found)
    : loop_(loop),
      log_(GetLogger("nri/host")),
      options_(std::move(options)),
      found_(std::move(found)),
      lister_(loop, "nri-plugins", std::chrono::milliseconds(0)) {}

void PluginFinder::Look(const std::string& plugin_path, const std::string& config_path) {
  plugin_path_ = plugin_path;
  config_path_ = config_path;
  ++look_;
  listed_ = false;
  told_ = false;
  paths_.clear();
  deadline_.reset();
  if (plugin_path.empty()) return OnListed({});
  const Status begun = lister_.Run(
      [this, look = look_, path = plugin_path, list = options_.list]() -> EventLoop::Task {
        return [this, look, names = list(path)] {
          if (look == look_) OnListed(names);
        };
      });
  if (!begun.ok()) return log_.Warn("cannot start plugins: {}", Message(begun));
  deadline_ = loop_.After(options_.deadline, [this] { OnDeadline(); });
}

void PluginFinder::OnListed(const PluginNames& names) {
  listed_ = true;
  for (const std::string& warning : names.warnings)
    log_.Text(LogLevel::kWarn, warning);
  for (const std::string& file : names.files)
    paths_.push_back(fmt::format("{}/{}", plugin_path_, file));
  std::erase_if(readings_, [this](const auto& each) {
    return !each.second.thread->busy() && std::ranges::find(paths_, each.first) == paths_.end();
  });
  if (paths_.empty()) {
    deadline_.reset();
    return Tell();
  }
  deadline_ = loop_.After(options_.deadline, [this] { OnDeadline(); });
  for (const std::string& file : names.files)
    Read(file);
}

void PluginFinder::Read(const std::string& file) {
  const std::string path = fmt::format("{}/{}", plugin_path_, file);
  Reading& reading = readings_[path];
  reading.read.reset();
  if (reading.thread == nullptr) {
    reading.thread = std::make_unique<OffLoop>(loop_, "nri-plugin", std::chrono::milliseconds(0));
  }
  const Status begun =
      reading.thread->Run([this, look = look_, path, file, plugins = plugin_path_,
                           configs = config_path_, read = options_.read]() -> EventLoop::Task {
        return [this, look, path, result = read(plugins, file, configs)] {
          if (look == look_) OnRead(path, result);
        };
      });
  if (!begun.ok()) OnRead(path, begun);
}

void PluginFinder::OnRead(const std::string& path, StatusOr<PluginFile> read) {
  if (!read.ok()) {
    log_.Warn("plugin {} is not started: {}", Printable(path), Message(read.status()));
  }
  readings_[path].read = std::move(read);
  const bool all = std::ranges::all_of(
      paths_, [this](const std::string& each) { return readings_[each].read.has_value(); });
  if (all) deadline_.reset();
  if (all || told_) Tell();
}

void PluginFinder::OnDeadline() {
  const EventLoop::HandlePtr running = std::move(deadline_);
  if (!listed_) {
    return log_.Warn("the plugins of {} are not known: its disk does not answer",
                     Printable(plugin_path_));
  }
  for (const std::string& path : paths_) {
    if (readings_[path].read.has_value()) continue;
    log_.Warn(
        "plugin {} is not started: the disk of it or of its configuration in {} does not answer",
        Printable(path), Printable(config_path_));
  }
  Tell();
}

void PluginFinder::Tell() {
  told_ = true;
  Found found;
  for (const std::string& path : paths_) {
    const auto& read = readings_[path].read;
    if (!read.has_value()) {
      found.late.push_back(path);
    } else if (read->ok()) {
      found.plugins.push_back(**read);
    }
  }
  found_(found);
}

}  // namespace resmgr::nri
