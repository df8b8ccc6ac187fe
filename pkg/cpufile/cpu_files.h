// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/config/module_configs.h"
#include "pkg/cpufile/cpu_file_stage.h"
#include "pkg/cpufile/cpu_file_writer.h"
#include "pkg/model/problem.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/policy/pinning.h"
#include "pkg/resmgr/observer.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Gives containers files with their CPUs: the container has a read-only directory mounted with a
// file that lists the CPUs in force (docs/cpu-file.md). The stage makes the directory before the
// runtime creates the container. From then on every change is written to the file, whatever the
// configuration says later. The directory is removed with its container. No state is saved: after a
// restart, the existing directories and the runtime's containers suffice. A directory is named
// after the name that its container had at its creation, which the resource manager keeps. Loop's
// thread only.
class CpuFiles final : public Observer, private CpuFileStage::Files {
 public:
  struct Options {
    EventLoop& loop;
    Pipeline& pipeline;       // gets the stage while containers are to have files
    std::string directory{};  // on the host; absolute, and this daemon's alone
    CpuSet cpus{};            // for containers that are not bound and whose request names no CPUs
    NodeSet mems{};
    PinningRule pinning{};  // containers that are never bound get no file
    CpuFileWriter::Options writer{};
  };

  // The objects of the options outlive this, and the pipeline's calls do not.
  explicit CpuFiles(Options options);
  ~CpuFiles() override;
  CpuFiles(const CpuFiles&) = delete;
  CpuFiles& operator=(const CpuFiles&) = delete;

  // Applies to containers that are created from now on. The first call also looks for the
  // directories of existing ones.
  void Configure(const CpuFilesConfig& config);

  // Number of containers with a file, and of files that are out of date.
  size_t size() const;
  size_t behind() const { return writer_.behind(); }
  // Files that cannot be written now.
  std::vector<Problem> problems() const;
  // Why the container has no file although it should have one, if this daemon has seen its
  // creation; else empty.
  std::string WhyNone(const ContainerId& id) const;

  void OnPlaced(const Act& act) override;
  void OnReleased(const Act& act) override;
  void OnInForce(const Act& act, const Place& place) override;
  void OnRenamed(const Act& act, std::string_view created_name) override;
  void OnRemoved(const Act& act) override;
  void OnListed(const Snapshot& all) override;

 private:
  struct Entry {
    // The file's text at the creation, while that is under way.
    std::string first_text{};
    bool being_created = false;
    // The last text in force, and the container that it is about: another container may be created
    // with the same name meanwhile.
    std::string text{};
    ContainerId holder{};
    std::string written{};  // the text that is written, or being written
    bool made = false;      // the directory exists
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  // CpuFileStage::Files
  std::string NameFor(const CreateRequest& request) override;
  Mount MountOf(const std::string& name) const override;
  void Make(const std::string& name, std::function<void(const Status&)> done) override;
  void Abandon(const std::string& name) override;
  void NoteNone(const std::string& name, std::string why) override;

  std::string DirectoryOf(const Container& container) const;
  void TakeNone(const Container& container);
  bool Wants(const Pod& pod, const Container& container) const;
  std::string TextOf(const Container& container, const Place& place) const;
  void Write(const std::string& name, Entry& entry);
  void Erase(Entries::iterator entry);
  void OnFound(const std::vector<std::string>& names);

  const Options options_;
  Logger& log_;
  CpuFilesConfig config_;
  CpuFileStage stage_;
  bool in_pipeline_ = false;
  bool looked_ = false;  // has begun to look for directories of earlier runs
  bool found_ = false;   // directories of earlier runs are in `entries_`
  Entries entries_;      // by the directory's name
  // The directories' names for renamed containers; empty if they have no directory.
  std::map<ContainerId, std::string> renamed_;
  // Why containers have no file: by the directory's name during the creation, then by id.
  std::map<std::string, std::string, std::less<>> none_yet_;
  std::map<ContainerId, std::string> none_;
  CpuFileWriter writer_;
};

}  // namespace resmgr
