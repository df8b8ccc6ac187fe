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

// Tells containers their CPUs: a container that gets a file has a read-only directory mounted with
// a file that has its CPUs in force (docs/cpu-file.md). The stage makes the directory before the
// runtime creates the container; from then on every change that is in force goes into the file,
// whatever the configuration says later. A directory is removed with its container. No state is
// saved: after a restart, the existing directories and the runtime's containers suffice. A
// directory has the name that its container had at its creation, which the resource manager keeps.
// Loop's thread only.
class CpuFiles final : public Observer, private CpuFileStage::Files {
 public:
  struct Options {
    EventLoop& loop;
    Pipeline& pipeline;       // gets the stage while containers are to have files
    std::string directory{};  // on the host; absolute, and this daemon's alone
    CpuSet cpus{};            // CPUs of a container that is not bound, and whose request names none
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

  // Containers with a file, and those of them whose file is not up to date.
  size_t size() const;
  size_t behind() const { return writer_.behind(); }
  // Files that cannot be written now.
  std::vector<Problem> problems() const;
  // The reason why the container has no file although it should have one, if this daemon has seen
  // its creation; else empty.
  std::string WhyNone(const ContainerId& id) const;

  void OnPlaced(const Act& act) override;
  void OnReleased(const Act& act) override;
  void OnInForce(const Act& act, const Place& place) override;
  void OnRenamed(const Act& act, std::string_view created_name) override;
  void OnRemoved(const Act& act) override;
  void OnListed(const Snapshot& all) override;

 private:
  struct Entry {
    // The first contents of the file, of a creation under way.
    std::string first_text{};
    bool being_created = false;
    // The text last in force, and its container: a container may be created with the name of a
    // living one.
    std::string text{};
    ContainerId holder{};
    std::string written{};  // or being written
    bool made = false;      // it has its directory
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
  bool looked_ = false;  // for directories of earlier runs
  bool found_ = false;   // the earlier ones are among the entries
  Entries entries_;      // by the name of the directory
  // The names of the directories of containers that were renamed; empty where they have none.
  std::map<ContainerId, std::string> renamed_;
  // Why containers have no file: by the name of the directory during a creation, then by id.
  std::map<std::string, std::string, std::less<>> none_yet_;
  std::map<ContainerId, std::string> none_;
  CpuFileWriter writer_;
};

}  // namespace resmgr
