// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_finder.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr::nri {

PluginFinder::PluginFinder(EventLoop& loop, Options options,
                           std::function<void(const Found&)> found)
    : loop_(loop),
      log_(GetLogger("nri/host")),
      options_(std::move(options)),
      found_(std::move(found)),
      lister_(loop, "nri-plugins", std::chrono::milliseconds(0)) {}

PluginFinder::~PluginFinder() = default;

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
