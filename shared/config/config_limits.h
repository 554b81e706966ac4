// Limits of the config's values. Limits that memory layouts set are in shared/base/limits.h.
#pragma once

#include <cstdint>

#include "shared/base/limits.h"

namespace atolldb::config_limits {

constexpr int64_t kKiB = 1LL << 10;
constexpr int64_t kMiB = 1LL << 20;
constexpr int64_t kGiB = 1LL << 30;
constexpr int64_t kTiB = 1LL << 40;
constexpr int64_t kMillisecondUs = 1'000;
constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kMinuteUs = 60 * kSecondUs;
constexpr int64_t kHourUs = 60 * kMinuteUs;

constexpr int64_t kMaxFileBytes = 1 * kMiB;
constexpr int64_t kMaxNameBytes = 32;
constexpr int64_t kMaxPathBytes = 1'024;
constexpr int64_t kMaxListEntries = 256;

/// sockaddr_un::sun_path holds 108 bytes with the terminating zero.
constexpr int64_t kMaxSocketPathBytes = 107;
/// Room for "/" and the longest name of a socket in run_dir.
constexpr int64_t kMaxSocketNameBytes = 24;
constexpr int64_t kMaxEndpointBytes = kMaxSocketPathBytes + 6;  // with "ipc://"
constexpr int64_t kMaxRunDirBytes = kMaxSocketPathBytes - kMaxSocketNameBytes;

constexpr int64_t kMaxServiceThreads = 64;
constexpr int64_t kMaxLoggers = 16;
constexpr int64_t kMaxNumaNode = 1'023;

constexpr int64_t kMinEpochUs = 1 * kMillisecondUs;
constexpr int64_t kMaxEpochUs = 1 * kSecondUs;
constexpr int64_t kMinHeartbeatUs = 10 * kMillisecondUs;
constexpr int64_t kMaxHeartbeatUs = 10 * kSecondUs;
constexpr int64_t kMinHangLimitUs = 500 * kMillisecondUs;
constexpr int64_t kMaxHangLimitUs = 1 * kHourUs;
/// With a lower hang limit, one late heartbeat would count as a hang.
constexpr int64_t kMinHeartbeatsPerHangLimit = 3;

constexpr int64_t kMinPoolBytes = kSegmentStepBytes;
/// Page indexes have 31 bits, pages 4 KiB.
constexpr int64_t kMaxPoolBytes = 8 * kTiB;
/// Provides more than one frame for each thread that reads snapshots: kMaxWorkersPerNode and a few.
constexpr int64_t kMinSnapshotCacheBytes = kSegmentStepBytes;
constexpr int64_t kMinLogBufferBytes = kSegmentStepBytes;
constexpr int64_t kMaxLogBufferBytes = 1 * kGiB;
constexpr int64_t kMinExchangeBytes = kSegmentStepBytes;
constexpr int64_t kMaxExchangeBytes = 1 * kGiB;
constexpr int64_t kMinLogFileBytes = 1 * kMiB;
constexpr int64_t kMaxLogFileBytes = 64 * kGiB;
/// Files are written in blocks of this size (kIoBlockBytes).
constexpr int64_t kLogFileStepBytes = 4 * kKiB;
constexpr int64_t kMaxBallastFiles = 64;
constexpr int64_t kMaxEmulatedLatencyUs = 100 * kMillisecondUs;
constexpr int64_t kMinDeviceHangUs = 100 * kMillisecondUs;
constexpr int64_t kMaxDeviceHangUs = 1 * kHourUs;
constexpr int64_t kMinSetEntries = 16;
constexpr int64_t kMaxSetEntries = 1LL << 24;  // limit of the write set: kMaxWriteSet

constexpr int64_t kMinGleanerIntervalUs = 100 * kMillisecondUs;
constexpr int64_t kMaxGleanerIntervalUs = 24 * kHourUs;
constexpr int64_t kMinLogVolumeBytes = 1 * kMiB;
constexpr int64_t kMaxLogVolumeBytes = 1 * kTiB;
constexpr int64_t kMaxDiskReserveBytes = 1 * kTiB;
constexpr int64_t kMinKeptSnapshots = 1;
constexpr int64_t kMaxKeptSnapshots = 16;
constexpr int64_t kMaxScrubRateBytes = 1 * kTiB;
constexpr int64_t kMinScrubIntervalUs = 100 * kMillisecondUs;
constexpr int64_t kMaxScrubIntervalUs = 24 * 30 * kHourUs;
constexpr int64_t kMinPoolLowWaterPercent = 1;
constexpr int64_t kMaxPoolLowWaterPercent = 90;
constexpr int64_t kMinPoolHighWaterPercent = kMinPoolLowWaterPercent + 1;
constexpr int64_t kMaxPoolHighWaterPercent = 95;

constexpr int64_t kMaxPort = 65'535;
/// The first node uses the port after the coordinator's.
constexpr int64_t kMaxBasePort = kMaxPort - 1;
constexpr int64_t kMinTimeLimitUs = 10 * kMillisecondUs;
constexpr int64_t kMaxTimeLimitUs = 1 * kHourUs;

}  // namespace atolldb::config_limits
