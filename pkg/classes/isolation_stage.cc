// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/isolation_stage.h"

#include <optional>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

class IsolationCall final : public StageCall {
 public:
  IsolationCall(Stage& stage, const IsolationStage::FindPod& find,
                const IsolationStage::Check& check)
      : StageCall(stage), find_(find), check_(check) {}

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
    const Status checked = check_(*pod, create->name);
    if (checked.ok()) return Pass();
    Refuse(Annotate(checked, fmt::format("container {}", Printable(FullName(*pod, create->name)))));
  }

 private:
  const IsolationStage::FindPod& find_;
  const IsolationStage::Check& check_;
};

}  // namespace

IsolationStage::IsolationStage(FindPod find, Check check)
    : Stage({.name = "classes",
             .rank = StageRank::kProgram,
             .operations = {Operation::kCreateContainer},
             .sets_numbers = false}),
      find_(std::move(find)),
      check_(std::move(check)) {}

std::unique_ptr<StageCall> IsolationStage::Begin(const Request&) {
  return std::make_unique<IsolationCall>(*this, find_, check_);
}

}  // namespace resmgr
