// SPDX-License-Identifier: Apache-2.0
#include "pkg/cpufile/cpu_file_stage.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// Less than a runtime waits for its NRI plugins, of which a daemon may be one.
constexpr std::chrono::milliseconds kDeadline{1'000};

class CpuFileCall final : public StageCall {
 public:
  CpuFileCall(Stage& stage, CpuFileStage::Files& files) : StageCall(stage), files_(files) {}
  // Its time was over, or the client went away.
  ~CpuFileCall() override { Abandon(); }

  void Before(Request& request, const Adjustment& so_far) override {
    const CreateRequest* const create = request.create();
    if (create == nullptr) return Pass();
    const std::string name = files_.NameFor(*create);
    if (name.empty()) return Pass();
    mount_ = files_.MountOf(name);
    if (IsTaken(request, so_far)) {
      return Fail(FailedPrecondition(
          "container {} has a mount of its own at {}, where the file with its CPUs would be: it "
          "gets none; cpuFiles.MountPath names another place for all",
          Printable(create->name), mount_.container_path));
    }
    name_ = name;
    const auto answer = std::make_shared<LateAnswer>(AnswerLater());
    files_.Make(name, [this, alive = std::weak_ptr<char>(alive_), answer](const Status& made) {
      if (!alive.expired()) Answer(*answer, made);
    });
  }
  void RollBack() override { Abandon(); }
  void After(Request&, const Outcome& outcome) override {
    // What came of a creation whose outcome is unclear, a list will tell.
    if (!outcome.ok() && !outcome.unclear()) return Abandon();
    name_.clear();
  }

 private:
  bool IsTaken(Request& request, const Adjustment& so_far) const {
    const std::string& path = mount_.container_path;
    const auto* const edit = so_far.wide() == nullptr ? nullptr : so_far.wide()->mounts.Find(path);
    if (edit != nullptr) return edit->value.has_value();
    const auto& mounts = request.Details({Detail::kMounts}).mounts;
    return std::ranges::any_of(
        mounts, [&path](const Mount& mount) { return mount.container_path == path; });
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
  std::string name_;  // of a file that ends with the creation unless that succeeds
  Mount mount_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace

CpuFileStage::CpuFileStage(Files& files)
    : Stage({.name = "cpu-files",
             .operations = {Operation::kCreateContainer},
             .deadline = kDeadline,
             .failure = FailurePolicy::kIgnore,
             .sets_numbers = false}),
      files_(files) {}

std::unique_ptr<StageCall> CpuFileStage::Begin(const Request&) {
  return std::make_unique<CpuFileCall>(*this, files_);
}

}  // namespace resmgr
