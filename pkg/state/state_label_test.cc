// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/state_label.h"

#include <utility>

#include <gtest/gtest.h>

#include "pkg/base/status.h"

namespace resmgr {
namespace {

Machine MachineOf(int cpus, int nodes) {
  Machine::Parts parts;
  for (int id = 0; id < cpus; ++id) {
    Cpu cpu;
    cpu.id = cpu.core = id;
    cpu.package = cpu.numa = 0;
    cpu.online = true;
    parts.cpus.push_back(cpu);
    parts.allowed.Add(id);
  }
  for (int id = 0; id < nodes; ++id) {
    NumaNode node;
    node.id = id;
    parts.nodes.push_back(node);
  }
  StatusOr<Machine> machine = Machine::Create(std::move(parts));
  EXPECT_TRUE(machine.ok()) << Describe(machine.status());
  return *std::move(machine);
}

bool Accepts(const StateLabel& now, const StateLabel& saved) {
  bool accepts = false;
  for (const auto& [name, value] : saved.Named())
    accepts |= now.Accepts(name, value);
  return accepts;
}

TEST(StateLabelTest, AMachineThatHasGrownIsTheSame) {
  const StateLabel small(MachineOf(2, 1));
  EXPECT_TRUE(Accepts(small, small));
  EXPECT_TRUE(Accepts(StateLabel(MachineOf(4, 1)), small));
  EXPECT_TRUE(Accepts(StateLabel(MachineOf(2, 2)), small));
}

TEST(StateLabelTest, AMachineThatLacksACpuOrNodeIsAnother) {
  EXPECT_FALSE(Accepts(StateLabel(MachineOf(2, 1)), StateLabel(MachineOf(4, 1))));
  EXPECT_FALSE(Accepts(StateLabel(MachineOf(2, 1)), StateLabel(MachineOf(2, 2))));
}

TEST(StateLabelTest, DamagedAndUnknownLabelsIdentifyNoMachine) {
  const StateLabel now(MachineOf(2, 1));
  for (const char* saved : {"", " ", "0-1", "0-1 ", " 0", "0-1 zero", "0-99999999 0", "0-1 0 0"})
    EXPECT_FALSE(now.Accepts("parts", saved)) << saved;
  EXPECT_FALSE(now.Accepts("color", now.machine));
  EXPECT_FALSE(StateLabel("m").Accepts("hardware", ""));
}

}  // namespace
}  // namespace resmgr
