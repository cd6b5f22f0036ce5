import { Ajv } from 'ajv';
import { AJV_OPTIONS, type Answers, SCHEMAS } from './schemas.ts';

/**
 * The validators of lldap's answers. In a bundle this file is replaced by the code that ajv generates
 * (`build-validators.ts`): loading and compiling ajv would cost a tenth of a second of each cold start.
 */
type Validator<Name extends keyof Answers> = (data: unknown) => data is Answers[Name];

const ajv = new Ajv(AJV_OPTIONS);
const validator = <Name extends keyof Answers>(name: Name): Validator<Name> => ajv.compile<Answers[Name]>(SCHEMAS[name]);

export const isLoginAnswer = validator('isLoginAnswer');
export const isRefreshAnswer = validator('isRefreshAnswer');
export const isClaims = validator('isClaims');
export const isErrorAnswer = validator('isErrorAnswer');
export const isVersionAnswer = validator('isVersionAnswer');
export const isUserAnswer = validator('isUserAnswer');
export const isUsersAnswer = validator('isUsersAnswer');
export const isGroupAnswer = validator('isGroupAnswer');
export const isGroupsAnswer = validator('isGroupsAnswer');
export const isGroupNamesAnswer = validator('isGroupNamesAnswer');
export const isSchemaAnswer = validator('isSchemaAnswer');
export const isSuccessAnswer = validator('isSuccessAnswer');
