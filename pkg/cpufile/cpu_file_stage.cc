// SPDX-License-Identifier: Apache-2.0
#include "pkg/cpufile/cpu_file_stage.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/model/adjustment.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {
namespace {

// Less than a runtime waits for its NRI plugins: the daemon may be one of them.
constexpr std::chrono::milliseconds kDeadline{1'000};

using Path = std::vector<std::string_view>;

// Splits a path in a container, resolved as the runtime joins it to the container's root: a pod may
// write one place in many ways. Nearly all images have /var/run as a link to /run.
Path PartsOf(std::string_view text) {
  Path parts;
  for (const std::string_view part : Split(text, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  if (parts.size() > 1 && parts[0] == "var" && parts[1] == "run") parts.erase(parts.begin());
  return parts;
}

bool BeginsWith(const Path& path, const Path& beginning) {
  return path.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), path.begin());
}

// Whether this mount conflicts with the mount of the CPU file at `ours`. Runtimes mount upper paths
// first. In a volume above, the CPU file's mount would hide a part of the content and make a
// directory, which fails if the volume is read-only. For a volume below, the runtime would make a
// directory in the CPU file's mount, which is read-only. The empty file systems that runtimes mount
// themselves (tmpfs at /run) have no content to hide.
bool IsInTheWay(const Mount& mount, const Path& ours) {
  const Path its = PartsOf(mount.container_path);
  if (BeginsWith(its, ours)) return true;
  const bool has_contents = mount.host_path.starts_with('/') || !mount.image.empty();
  return has_contents && BeginsWith(ours, its);
}

class CpuFileCall final : public StageCall {
 public:
  CpuFileCall(Stage& stage, CpuFileStage::Files& files) : StageCall(stage), files_(files) {}
  // Also ends calls that ran out of time or whose client went away.
  ~CpuFileCall() override { Abandon(); }

  void Before(Request& request, const Adjustment& so_far) override {
    const CreateRequest* const create = request.create();
    if (create == nullptr) return Pass();
    const std::string name = files_.NameFor(*create);
    if (name.empty()) return Pass();
    mount_ = files_.MountOf(name);
    if (const std::optional<std::string> other = OtherMount(request, so_far)) {
      files_.NoteNone(name, fmt::format("none: it has a mount of its own at {}, and the file would "
                                        "be at {}",
                                        Printable(*other), mount_.container_path));
      return Fail(FailedPrecondition(
          "container {} has a mount of its own at {}, and the file with its CPUs would be at {}: "
          "it gets none; cpuFiles.MountPath names another place for all",
          Printable(create->name), Printable(*other), mount_.container_path));
    }
    name_ = name;
    const auto answer = std::make_shared<LateAnswer>(AnswerLater());
    files_.Make(name,
                lifetime_.Guard([this, answer](const Status& made) { Answer(*answer, made); }));
  }
  void RollBack() override { Abandon(); }
  void After(Request&, const Outcome& outcome) override {
    // If it is unclear whether the container was created, a later list of containers will show it.
    if (!outcome.ok() && !outcome.unclear()) return Abandon();
    name_.clear();
  }

 private:
  // The path of a mount that conflicts with the CPU file's mount, if any.
  std::optional<std::string> OtherMount(Request& request, const Adjustment& so_far) const {
    const Path ours = PartsOf(mount_.container_path);
    ContainerDetails details;
    details.mounts = request.Details({Detail::kMounts}).mounts;
    Overlay(so_far, details);
    for (const Mount& mount : details.mounts) {
      if (IsInTheWay(mount, ours)) return mount.container_path;
    }
    return std::nullopt;
  }
  void Answer(LateAnswer& answer, const Status& made) {
    if (!made.ok()) {
      Abandon();
      return answer.Fail(Annotate(made, "the container gets no file with its CPUs"));
    }
    Adjustment adjustment;
    adjustment.Wide().mounts.Set(mount_.container_path, mount_);
    answer.Adjust(std::move(adjustment));
  }
  void Abandon() {
    if (!name_.empty()) files_.Abandon(std::exchange(name_, {}));
  }

  CpuFileStage::Files& files_;
  std::string name_;  // name of the file to remove if the creation fails
  Mount mount_;
  Lifetime lifetime_;
};

}  // namespace

CpuFileStage::CpuFileStage(Files& files)
    : Stage({.name = "cpu-files",
             .rank = StageRank::kCpuFiles,
             .operations = {Operation::kCreateContainer},
             .deadline = kDeadline,
             .failure = FailurePolicy::kIgnore,
             .sets_numbers = false}),
      files_(files) {}

std::unique_ptr<StageCall> CpuFileStage::Begin(const Request&) {
  return std::make_unique<CpuFileCall>(*this, files_);
}

}  // namespace resmgr
