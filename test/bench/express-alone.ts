import express from 'express';

/** What a function of nothing but express would be: the same server, the same body, the same bundler and compile cache. */
export const FUNCTIONS = {
  async user() {
    const app = express();
    app.get('/health/readiness', (_request, response) => void response.status(200).end());
    app.post('/', express.raw({ type: () => true, limit: '2mb' }), (request, response) => {
      JSON.parse(request.body);
      response.status(204).end();
    });
    app.listen(process.env.PORT);
    process.once('SIGTERM', () => process.exit());
  },
};
