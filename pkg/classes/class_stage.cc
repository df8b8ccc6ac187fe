// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_stage.h"

#include <optional>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

class ClassCall final : public StageCall {
 public:
  ClassCall(Stage& stage, const ClassStage::FindPod& find, const ClassStage::Decide& decide)
      : StageCall(stage), find_(find), decide_(decide) {}

  void Before(Request& request, const Adjustment&) override {
    const CreateRequest* const create = request.create();
    if (create == nullptr) return Pass();
    const Pod* pod = find_(create->pod_id);
    std::optional<Pod> read;
    if (pod == nullptr) {
      read = create->pod ? create->pod : request.ReadPod();
      if (read) pod = &*read;
    }
    if (pod == nullptr) return Pass();
    const StatusOr<ClassStage::Files> files = decide_(*pod, *create);
    if (!files.ok()) {
      return Refuse(Annotate(files.status(),
                             fmt::format("container {}", Printable(FullName(*pod, create->name)))));
    }
    if (files->empty()) return Pass();
    Adjustment adjustment;
    for (const auto& [file, text] : *files)
      adjustment.Wide().unified.Set(file, text);
    Adjust(std::move(adjustment));
  }

 private:
  const ClassStage::FindPod& find_;
  const ClassStage::Decide& decide_;
};

}  // namespace

ClassStage::ClassStage(FindPod find, Decide decide)
    : Stage({.name = "classes",
             .rank = StageRank::kProgram,
             .operations = {Operation::kCreateContainer},
             .sets_numbers = false}),
      find_(std::move(find)),
      decide_(std::move(decide)) {}

std::unique_ptr<StageCall> ClassStage::Begin(const Request&) {
  return std::make_unique<ClassCall>(*this, find_, decide_);
}

}  // namespace resmgr
