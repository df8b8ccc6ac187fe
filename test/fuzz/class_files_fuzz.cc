// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/classes/class_journal.h"
#include "pkg/classes/cpu_mask.h"
#include "pkg/classes/host_files.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/classes/interrupt_plan.h"
#include "pkg/classes/irqbalance.h"
#include "pkg/classes/rdt_plan.h"
#include "pkg/classes/scheduling_kind.h"
#include "pkg/classes/testing/fake_host_files.h"
#include "test/fuzz/checks.h"

namespace resmgr {
namespace {

using resmgr::fuzz::Check;

void FuzzTexts(std::string_view text) {
  if (const auto cpus = ParseCpuMask(text); cpus.ok()) {
    const auto again = ParseCpuMask(FormatCpuMask(*cpus, text));
    Check(again.ok() && *again == *cpus);
  }
  const RdtSchemata schemata = ParseSchemata(text);
  Check(ParseSchemata(SchemataText(schemata)) == schemata);
  Check(HasSchemata(schemata, schemata));
  ParseQuota(text).IgnoreError();
  HostValueLine(text);
  BannedMaskOf(text).IgnoreError();
  BannedInterruptsOf(text);
  // The file is written again and again.
  const std::string banned = WithBannedCpus(text, CpuSet{1, 70});
  Check(WithBannedCpus(banned, CpuSet{1, 70}) == banned);
  Check(BannedCpusOf(ReplaceBannedCpus(text, banned)) == banned);
  for (const char* const path :
       {"sys/fs/cgroup/c/io.max", "sys/fs/cgroup/c/io.weight", "sys/fs/cgroup/c/cpu.max",
        "sys/fs/cgroup/c/blkio.throttle.read_bps_device", "sys/fs/cgroup/c/memory.high",
        "sys/fs/resctrl/g/schemata", "sys/fs/resctrl/g/cpus_list", "proc/irq/1/smp_affinity"}) {
    Check(SameHostValue(path, text, text));
    const std::string normal = NormalDeviceLines(path, text);
    Check(NormalDeviceLines(path, normal) == normal);
  }
}

void FuzzJournal(std::string_view text) {
  // The first values of files, which are plain text (RealHostFiles), come back byte for byte.
  std::string bytes(text);
  for (char& c : bytes)
    if (c != '\n' && (c < ' ' || c > '~')) c = 'x';
  const ClassJournal::Entries kept = {{"sys/a", {.first = bytes, .wanted = "1", .was = bytes}}};
  const auto read = ParseJournal(JournalText(kept, "boot"), "boot");
  Check(read.ok() && *read == kept);
  const auto entries = ParseJournal(text, "");
  if (!entries.ok()) return;
  const auto again = ParseJournal(JournalText(*entries, "boot"), "boot");
  Check(again.ok() && *again == *entries);
}

void FuzzInterrupts(std::string_view text) {
  test::FakeHostFiles files;
  files.tree["proc/interrupts"] = text;
  files.tree["proc/irq/1/smp_affinity"] = files.tree["proc/irq/24/smp_affinity"] = text;
  for (const Interrupt& one : FindInterrupts(files)) {
    Check(one.number >= 0 && one.text.ends_with(one.name()));
    IsControllable(one, {"*", "[a-z]*", std::string(text.substr(0, 64))});
  }
}

// The files of resctrl, one after the other.
void FuzzResctrl(std::string_view text) {
  constexpr std::array kNames = {"schemata",
                                 "info/L3/cbm_mask",
                                 "info/L3/min_cbm_bits",
                                 "info/L3/num_closids",
                                 "info/L3/sparse_masks",
                                 "info/MB/num_closids",
                                 "info/MB/min_bandwidth",
                                 "info/MB/bandwidth_gran"};
  test::FakeHostFiles files;
  size_t name = 0;
  for (const std::string_view part : Split(text, '\0')) {
    if (name == kNames.size()) break;
    files.tree[fmt::format("{}/{}", kResctrlRoot, kNames[name++])] = part;
  }
  ClassJournal journal("/nowhere", "");
  HostKeeper keeper(files, journal);
  const StatusOr<RdtHost> host = ReadRdt(keeper);
  if (!host.ok()) return;
  if (const auto& cache = host->machine.l3)
    Check(cache->mask != 0 && (cache->mask & (cache->mask + 1)) == 0 && cache->min_bits >= 1);
  if (const auto& bandwidth = host->machine.mb) Check(bandwidth->step >= 1);
}

}  // namespace
}  // namespace resmgr

// Whatever the kernel, irqbalance or a damaged disk says: values are in range, and a text that is
// read, written and read again is the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  resmgr::FuzzTexts(text);
  resmgr::FuzzJournal(text);
  resmgr::FuzzInterrupts(text);
  resmgr::FuzzResctrl(text);
  return 0;
}
