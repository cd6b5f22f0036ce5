import { once } from 'node:events';
import { createServer } from 'node:http';

/** A receiver of OTLP over HTTP with JSON, as a collector is one: keeps what it is sent. */
export interface OtlpReceiver {
  url: string;
  spans(): SentSpan[];
  /** The latest value of each series: metric name, attributes, value. */
  points(): SentPoint[];
  /** Everything as it came, to search for what must not be in it. */
  text(): string;
  close(): Promise<void>;
}

export interface SentSpan {
  service: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  attributes: Record<string, string>;
}

export interface SentPoint {
  metric: string;
  unit: string;
  attributes: Record<string, string>;
  value: number;
}

type Value = { stringValue?: string; intValue?: string | number; doubleValue?: number; boolValue?: boolean };
type Pair = { key: string; value: Value };
interface Body {
  resourceSpans?: {
    resource: { attributes: Pair[] };
    scopeSpans: { spans: (Omit<SentSpan, 'attributes' | 'service'> & { attributes?: Pair[] })[] }[];
  }[];
  resourceMetrics?: {
    scopeMetrics: { metrics: { name: string; unit: string; sum?: Data; gauge?: Data }[] }[];
  }[];
}
interface Data {
  dataPoints: { attributes?: Pair[]; asInt?: string | number; asDouble?: number }[];
}

export async function startReceiver(): Promise<OtlpReceiver> {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      bodies.push(body);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('the receiver has no port');
  const parsed = () => bodies.map((body) => JSON.parse(body) as Body);
  return {
    url: `http://127.0.0.1:${address.port}`,
    spans: () =>
      parsed().flatMap(({ resourceSpans = [] }) =>
        resourceSpans.flatMap(({ resource, scopeSpans }) =>
          scopeSpans.flatMap(({ spans }) =>
            spans.map((span) => ({
              ...span,
              service: record(resource.attributes)['service.name'] ?? '',
              attributes: record(span.attributes),
            })),
          ),
        ),
      ),
    points: () =>
      parsed().flatMap(({ resourceMetrics = [] }) =>
        resourceMetrics
          .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
          .flatMap(({ name, unit, sum, gauge }) =>
            ((sum ?? gauge)?.dataPoints ?? []).map(({ attributes, asInt, asDouble }) => ({
              metric: name,
              unit,
              attributes: record(attributes),
              value: Number(asInt ?? asDouble),
            })),
          ),
      ),
    text: () => bodies.join('\n'),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function record(pairs: Pair[] = []): Record<string, string> {
  return Object.fromEntries(
    pairs.map(({ key, value }) => [key, String(value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue)]),
  );
}
