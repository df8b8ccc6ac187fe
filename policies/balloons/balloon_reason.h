// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "policies/balloons/balloon.h"
#include "policies/balloons/balloon_setup.h"

namespace resmgr {

// The reason of a placement in a balloon: a text, and what a restart needs to know of the balloon.
struct BalloonReason {
  std::string text{};
  CpuSet borrowed{};
  CpuSet room{};
  // The components that balanceComponents chose, by their types; those inside a component behind
  // it.
  std::vector<std::string> chosen{};
  // The balloon's own CPUs, since its containers may also run on others: those of each component,
  // as BalloonPart::Leaves. Former versions wrote the CPUs of all together.
  std::vector<CpuSet> parts{};

  CpuSet Own() const;  // empty if the reason names none
};
BalloonReason ReadReason(const std::string& reason);

// The part of a reason behind the text.
std::string EndOfReason(const BalloonSetup& setup, const Balloon& balloon);

// The text of a container in a balloon that has fewer CPUs than needed.
std::string TextForFewerCpus(const std::string& text);
// The text of a container that is in `balloon` because its own type has no CPUs for it.
std::string TextForWantOfRoom(const std::string& text, const std::string& balloon,
                              const std::string& type);

}  // namespace resmgr
