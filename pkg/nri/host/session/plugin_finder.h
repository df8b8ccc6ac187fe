// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr::nri {

// An executable plugin and its configuration.
struct PluginFile {
  std::string path;
  std::string index;
  std::string name;
  std::string config;

  friend bool operator==(const PluginFile&, const PluginFile&) = default;
};

inline constexpr size_t kMostPluginFiles = 32;

struct PluginNames {
  std::vector<std::string> files;     // names in the directory, by index and name
  std::vector<std::string> warnings;  // printable reasons why others are left out
};

// Lists the executables in the directory, at most kMostPluginFiles. A missing directory has none. A
// file that is called like a plugin and is not executable is a warning.
// May block on the disk.
PluginNames ListPluginFiles(const std::string& plugin_path);

// The plugin of an executable "NN-name", configured with "NN-name.conf" or else "name.conf" of
// `config_path` (NRI 0.6); if `config_path` is "", without a configuration. An error: the name or
// the configuration is not valid, or the file is a WebAssembly module, which NRI 0.9 and later know
// and nothing here can run. May block on the disk, but waits for no writer of a FIFO.
StatusOr<PluginFile> ReadPluginFile(const std::string& plugin_path, const std::string& file,
                                    const std::string& config_path);

// Finds the plugins to be started, off the loop: one thread lists the directory, and each plugin's
// files are read on a thread of their own, so that a hanging file prevents only its own plugin's
// start. Loop's thread only.
class PluginFinder {
 public:
  struct Found {
    std::vector<PluginFile> plugins;  // by index and name
    std::vector<std::string> late;    // paths of plugins whose files do not answer
  };
  struct Options {
    std::chrono::milliseconds deadline{5'000};  // after which a file counts as hanging
    // Called on the threads; may outlive the finder.
    std::function<PluginNames(const std::string& plugin_path)> list = ListPluginFiles;
    std::function<StatusOr<PluginFile>(const std::string& plugin_path, const std::string& file,
                                       const std::string& config_path)>
        read = ReadPluginFile;
  };

  // `found` gets all plugins once their files were read or are late, and again whenever a late one
  // becomes available. It is not called after the end of this object, and must not destroy it. This
  // class logs the reasons why plugins are left out.
  PluginFinder(EventLoop& loop, Options options, std::function<void(const Found&)> found);
  PluginFinder(const PluginFinder&) = delete;
  PluginFinder& operator=(const PluginFinder&) = delete;

  // Drops the results of looks at other directories that are still under way.
  void Look(const std::string& plugin_path, const std::string& config_path);

 private:
  struct Reading {
    std::unique_ptr<OffLoop> thread;
    std::optional<StatusOr<PluginFile>> read{};
  };

  void OnListed(const PluginNames& names);
  void Read(const std::string& file);
  void OnRead(const std::string& path, StatusOr<PluginFile> read);
  void OnDeadline();
  void Tell();

  EventLoop& loop_;
  Logger& log_;
  const Options options_;
  const std::function<void(const Found&)> found_;
  std::string plugin_path_;
  std::string config_path_;
  uint64_t look_ = 0;    // counts the looks
  bool listed_ = false;  // in the present look
  bool told_ = false;
  OffLoop lister_;
  // By path, in the order of index and name. A hanging read stays here, so that a file never
  // occupies more than one thread.
  std::map<std::string, Reading> readings_;
  std::vector<std::string> paths_;  // the paths of the present look
  EventLoop::HandlePtr deadline_;
};

}  // namespace resmgr::nri
