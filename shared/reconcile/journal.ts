import type { KindName, Retry } from '../kube/resources.ts';
import type { Carried } from './carried.ts';
import type { Echoes } from './echoes.ts';
import type { Hints } from './queue.ts';

/** What one pass found and did, as answered to `Prefer: return=representation`. Holds no value of a spec. */
export interface Report {
  result: 'gone' | 'ignored' | 'waiting' | 'unchanged' | 'settled' | 'deleted' | 'unwritten';
  kind: KindName;
  namespace: string;
  name: string;
  ready?: boolean;
  reason?: string;
  message?: string;
  did: string[];
  retry?: Retry;
}

export interface Settings {
  maxPasses: number;
  retryMaxMs: number;
  /** 0 to 1; replaced in tests. */
  random?: () => number;
}

/** What one pass remembers over its tries. */
export interface Journal<K extends KindName> {
  did: string[];
  /** What was already done for this uid, such as a password's hash, when another's write came first. */
  carried?: Carried<K>;
  hints: Hints;
  settings: Settings;
  echoes: Echoes;
  report(result: Report['result'], more?: Partial<Report>): Report;
}
